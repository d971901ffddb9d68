"""The view of a run from outside: numbers, a page, metrics, and the commands that ask for them."""
