"""Stages: the generated loops that call the user's functions, and the exits through which messages leave."""
