"""Connectors: their configs, and beside them the programs that come with the SDK, each a module of its own."""

from wallaroo.connector.config import SINK_PORT, SOURCE_PORT, SinkConnectorConfig, SourceConnectorConfig, hint_of

__all__ = ["SINK_PORT", "SOURCE_PORT", "SinkConnectorConfig", "SourceConnectorConfig", "hint_of"]
