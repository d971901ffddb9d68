"""Write stream computations in Python and run them on Apache Spark."""

from wallaroo.component.aggregation import Aggregation, WindowBounds
from wallaroo.component.application import Application
from wallaroo.component.decorator import (
    computation,
    computation_multi,
    decoder,
    encoder,
    key_extractor,
    partition,
    state_computation,
    state_computation_multi,
)
from wallaroo.component.row import Rows
from wallaroo.component.text_line import LineDecoder, LineEncoder, line_decoder, line_encoder
from wallaroo.component.window import (
    count_windows,
    hours,
    microseconds,
    milliseconds,
    minutes,
    nanoseconds,
    range_windows,
    seconds,
    session_windows,
)
from wallaroo.component.wrapped import (
    BaseWrapped,
    Computation,
    ComputationMulti,
    Decoder,
    Encoder,
    KeyExtractor,
    Partition,
    StateBuilder,
)
from wallaroo.component.wrapped_state import StateComputation, StateComputationMulti
from wallaroo.declare.build import build_application
from wallaroo.declare.builder import ApplicationBuilder
from wallaroo.declare.library import build_library, offer, other_program
from wallaroo.declare.pipeline import Pipeline, source
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.endpoint.generator import GenSourceConfig
from wallaroo.endpoint.kafka import (
    CustomKafkaSinkCLIParser,
    CustomKafkaSourceCLIParser,
    DefaultKafkaSinkCLIParser,
    DefaultKafkaSourceCLIParser,
    KafkaSinkConfig,
    KafkaSourceConfig,
)
from wallaroo.endpoint.kafka_option import kafka_parse_sink_options, kafka_parse_source_options
from wallaroo.endpoint.spark import (
    DataFrameSinkConfig,
    DataFrameSourceConfig,
    SparkSinkConfig,
    SparkSourceConfig,
)
from wallaroo.endpoint.tcp import TCPSinkConfig, TCPSourceConfig, tcp_parse_input_addrs, tcp_parse_output_addrs
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.output import output
from wallaroo.message.serialization import deserialize, serialize
from wallaroo.message.timer import Deleted, Timers

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
    "DataFrameSinkConfig",
    "DataFrameSourceConfig",
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
    "Rows",
    "SparkSinkConfig",
    "SparkSourceConfig",
    "StateBuilder",
    "StateComputation",
    "StateComputationMulti",
    "TCPSinkConfig",
    "TCPSourceConfig",
    "Timers",
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
    "session_windows",
    "source",
    "state_computation",
    "state_computation_multi",
    "tcp_parse_input_addrs",
    "tcp_parse_output_addrs",
]
