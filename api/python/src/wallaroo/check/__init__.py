"""Checks of a declaration: names and addresses, states that cannot be saved, and objects that keep data."""
