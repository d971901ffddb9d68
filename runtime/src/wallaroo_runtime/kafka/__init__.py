"""Kafka for the hands: a broker on this machine, its topics, and what reaches any broker."""
