"""Functions of the operating system that all parts use: locks, processes, pauses between tries."""
