"""Kafka for people: a broker on this machine, its topics, and clients of any broker."""
