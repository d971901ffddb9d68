"""Calls on the state of one bucket: messages, visits and windows in order, all or nothing."""
