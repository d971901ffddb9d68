"""What a run looks like from outside: numbers, a page, metrics, and the commands that ask for them."""
