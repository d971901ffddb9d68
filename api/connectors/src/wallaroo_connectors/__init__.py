"""Connector programs: each brings messages of another system to an application, or output of it to that system."""
