"""Clients of Kafka for commands, gateway and egress, and a broker on this machine."""
