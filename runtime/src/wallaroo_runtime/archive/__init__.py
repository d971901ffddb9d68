"""Archives of applications: no content of an archive is trusted before its hash was compared."""
