"""The gRPC services (gateway and egress) and their clients: calls, tokens, status, and the watch over the driver."""
