"""Implements the commands for Kafka: a broker on this machine, its topics, and clients of any broker."""
