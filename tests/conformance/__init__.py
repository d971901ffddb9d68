"""Checks any worker against the specification."""
