"""A run as seen from outside: numbers, a page, metrics, and the commands that show them."""
