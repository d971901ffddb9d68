"""The content of a checkpoint directory, and whether a program may go on with it."""
