"""Hosts computations written in Python for the runtime."""
