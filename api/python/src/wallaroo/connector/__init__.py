"""Connectors: their configs, and the programs that come with the SDK, each a module of its own."""

from wallaroo.connector.config import SinkConnectorConfig, SourceConnectorConfig

__all__ = ["SinkConnectorConfig", "SourceConnectorConfig"]
