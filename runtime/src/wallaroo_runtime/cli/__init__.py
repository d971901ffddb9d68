"""The command `wallaroo`."""
