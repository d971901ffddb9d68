"""Checks at the declaration: names and addresses, states that cannot be kept, and objects that keep something."""
