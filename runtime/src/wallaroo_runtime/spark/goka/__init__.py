"""Continues the groups of Goka's own processors."""
