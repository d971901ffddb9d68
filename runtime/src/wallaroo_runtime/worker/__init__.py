"""Starts, finds and calls the workers that host user code."""
