"""The gRPC services and their clients: calls, tokens, status, and the watch over the driver."""
