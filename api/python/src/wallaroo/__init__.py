"""Write stream computations in Python and run them on Apache Spark."""

from wallaroo.aggregation import Aggregation, WindowBounds
from wallaroo.application import Application
from wallaroo.build import build_application
from wallaroo.builder import ApplicationBuilder
from wallaroo.decorator import (
    computation,
    computation_multi,
    decoder,
    encoder,
    key_extractor,
    partition,
    state_computation,
    state_computation_multi,
)
from wallaroo.error import WallarooParameterError
from wallaroo.generator import GenSourceConfig
from wallaroo.kafka import (
    CustomKafkaSinkCLIParser,
    CustomKafkaSourceCLIParser,
    DefaultKafkaSinkCLIParser,
    DefaultKafkaSourceCLIParser,
    KafkaSinkConfig,
    KafkaSourceConfig,
)
from wallaroo.kafka_option import kafka_parse_sink_options, kafka_parse_source_options
from wallaroo.kafka_record import KafkaRecord
from wallaroo.library import build_library, offer, other_program
from wallaroo.line import LineDecoder, LineEncoder, line_decoder, line_encoder
from wallaroo.output import output
from wallaroo.pipeline import Pipeline, source
from wallaroo.serialization import deserialize, serialize
from wallaroo.spark import SparkSinkConfig, SparkSourceConfig
from wallaroo.tcp import TCPSinkConfig, TCPSourceConfig, tcp_parse_input_addrs, tcp_parse_output_addrs
from wallaroo.visit import Deleted
from wallaroo.window import (
    count_windows,
    hours,
    microseconds,
    milliseconds,
    minutes,
    nanoseconds,
    range_windows,
    seconds,
)
from wallaroo.wrapped import (
    BaseWrapped,
    Computation,
    ComputationMulti,
    Decoder,
    Encoder,
    KeyExtractor,
    Partition,
    StateBuilder,
    StateComputation,
    StateComputationMulti,
)

__all__ = [
    "Aggregation",
    "WindowBounds",
    "Application",
    "ApplicationBuilder",
    "BaseWrapped",
    "Computation",
    "ComputationMulti",
    "CustomKafkaSinkCLIParser",
    "CustomKafkaSourceCLIParser",
    "Decoder",
    "DefaultKafkaSinkCLIParser",
    "DefaultKafkaSourceCLIParser",
    "Deleted",
    "Encoder",
    "GenSourceConfig",
    "KafkaRecord",
    "KafkaSinkConfig",
    "KafkaSourceConfig",
    "KeyExtractor",
    "LineDecoder",
    "LineEncoder",
    "Partition",
    "Pipeline",
    "SparkSinkConfig",
    "SparkSourceConfig",
    "StateBuilder",
    "StateComputation",
    "StateComputationMulti",
    "TCPSinkConfig",
    "TCPSourceConfig",
    "WallarooParameterError",
    "build_application",
    "build_library",
    "computation",
    "computation_multi",
    "count_windows",
    "decoder",
    "deserialize",
    "encoder",
    "hours",
    "kafka_parse_sink_options",
    "kafka_parse_source_options",
    "key_extractor",
    "line_decoder",
    "line_encoder",
    "microseconds",
    "milliseconds",
    "minutes",
    "nanoseconds",
    "offer",
    "other_program",
    "output",
    "partition",
    "range_windows",
    "seconds",
    "serialize",
    "source",
    "state_computation",
    "state_computation_multi",
    "tcp_parse_input_addrs",
    "tcp_parse_output_addrs",
]
