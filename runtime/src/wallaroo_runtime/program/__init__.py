"""Finds the programs of users, runs them as front-ends, builds and packs them."""
