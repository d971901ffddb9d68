"""Connectors of Wallaroo 0.5 and 0.6: encoders and decoders for them, and base classes of connector programs."""

from wallaroo.connector import SinkConnectorConfig, SourceConnectorConfig
from wallaroo.experimental.at_least_once import AtLeastOnceSourceConnector, Stream
from wallaroo.experimental.connectors import (
    BaseIter,
    BaseSource,
    FramedFileReader,
    MultiSourceConnector,
    ThrottledFileReader,
)
from wallaroo.experimental.script import SinkConnector, SourceConnector, UnexpectedSocketError, parse_connector_args
from wallaroo.experimental.stream import (
    StreamDecoderError,
    octet_message_decoder,
    octet_message_encoder,
    stream_message_decoder,
    stream_message_encoder,
)
from wallaroo.experimental.transactional import TransactionalSinkConnector, TransactionalTarget

__all__ = [
    "AtLeastOnceSourceConnector",
    "BaseIter",
    "BaseSource",
    "FramedFileReader",
    "MultiSourceConnector",
    "SinkConnector",
    "SinkConnectorConfig",
    "SourceConnector",
    "SourceConnectorConfig",
    "Stream",
    "StreamDecoderError",
    "ThrottledFileReader",
    "TransactionalSinkConnector",
    "TransactionalTarget",
    "UnexpectedSocketError",
    "octet_message_decoder",
    "octet_message_encoder",
    "parse_connector_args",
    "stream_message_decoder",
    "stream_message_encoder",
]
