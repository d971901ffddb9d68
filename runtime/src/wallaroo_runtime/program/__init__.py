"""Finds the programs of users, runs them to get their topologies, builds and packs them."""
