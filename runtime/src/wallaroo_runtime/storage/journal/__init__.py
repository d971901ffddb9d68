"""Reads and writes the journal: the messages of sources, in order of arrival, in files that only grow.

docs/internals/input.md has the layout. One process writes a journal, any number of processes read it.
"""
