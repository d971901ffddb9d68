"""A stage: the loop over the user's functions, and the exits through which messages leave it."""
