"""Reads and checks the topology document, and represents it as values."""
