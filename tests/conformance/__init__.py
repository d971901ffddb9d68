"""Checks any worker against the specification; needs grpcio and protobuf, and this repository."""

from conformance import environment

__all__ = ["environment"]
