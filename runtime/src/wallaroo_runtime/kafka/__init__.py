"""Kafka for the hands: a broker on this machine, its topics, and clients of any broker."""
