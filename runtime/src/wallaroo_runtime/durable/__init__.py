"""Reads and writes small files that survive a crash."""
