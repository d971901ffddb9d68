"""Reads the archives of applications; no content is trusted before its hash was compared."""
