"""Journal, staging and outbox, in files or at a service."""
