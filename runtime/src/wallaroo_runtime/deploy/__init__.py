"""One run of an application: its checkpoint directory, its processes, its query."""
