"""Reads and writes a checkpoint directory, and checks whether a program may continue with it."""
