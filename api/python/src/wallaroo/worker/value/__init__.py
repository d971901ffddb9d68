"""Conversion of messages and states between bytes and objects, and dead letters."""
