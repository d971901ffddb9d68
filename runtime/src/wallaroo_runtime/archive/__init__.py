"""Archives of applications: nothing in one is trusted before its hash was compared."""
