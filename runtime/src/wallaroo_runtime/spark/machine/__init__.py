"""Java, its settings and files, the master: everything that a query's machine must have."""
