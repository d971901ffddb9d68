"""Runs the setup of a program, and writes its topology document."""
