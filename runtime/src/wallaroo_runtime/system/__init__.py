"""What all parts ask of the operating system in the same way: locks, processes, pauses between tries."""
