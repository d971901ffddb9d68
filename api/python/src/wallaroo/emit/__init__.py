"""From a program to its topology document."""
