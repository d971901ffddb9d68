"""Journal, staging and outbox where tasks find them: in files, or at a service."""
