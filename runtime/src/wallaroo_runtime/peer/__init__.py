"""Gateway and egress as a driver uses them: local processes, or remote services."""
