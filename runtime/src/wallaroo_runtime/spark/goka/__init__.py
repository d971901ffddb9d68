"""Lets a new checkpoint continue groups that ran with Goka, a Go library: from its tables and committed offsets."""
