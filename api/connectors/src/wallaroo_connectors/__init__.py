"""Connector programs: each brings another system's messages to an application, or its output to the system."""
