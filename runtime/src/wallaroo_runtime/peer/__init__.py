"""Gateway and egress as a driver sees them, however far away they are."""
