"""Rules of the repository, as functions from a directory to the violations in it."""
