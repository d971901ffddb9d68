"""Both ends of the gRPC services: calls, tokens, status, the watch over the driver."""
