"""Reads and unpacks the archives that `wallaroo pack` makes of applications. No content is trusted."""
