"""The content of a checkpoint directory, and the checks whether a program may continue with it."""
