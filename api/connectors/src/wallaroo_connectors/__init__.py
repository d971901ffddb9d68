"""Connector programs: each brings messages of another system to an application, or takes its output there."""
