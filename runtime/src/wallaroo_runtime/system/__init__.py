"""Locks, processes, pauses between tries: the services of the operating system that all parts use."""
