"""Checks of a program's declarations: names, addresses, states that cannot be saved, objects that keep data."""
