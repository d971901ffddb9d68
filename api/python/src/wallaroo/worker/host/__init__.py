"""The worker as a process: calls, their gRPC service, sockets, signals, traces and the debugger."""
