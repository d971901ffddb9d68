"""Write stream computations in Python and run them on Apache Spark."""

from wallaroo.application import Application
from wallaroo.builder import ApplicationBuilder
from wallaroo.decorator import (
    computation,
    computation_multi,
    decoder,
    encoder,
    partition,
    state_computation,
    state_computation_multi,
)
from wallaroo.error import WallarooParameterError
from wallaroo.serialization import deserialize, serialize
from wallaroo.tcp import TCPSinkConfig, TCPSourceConfig, tcp_parse_input_addrs, tcp_parse_output_addrs
from wallaroo.wrapped import (
    BaseWrapped,
    Computation,
    ComputationMulti,
    Decoder,
    Encoder,
    Partition,
    StateBuilder,
    StateComputation,
    StateComputationMulti,
)

__all__ = [
    "Application",
    "ApplicationBuilder",
    "BaseWrapped",
    "Computation",
    "ComputationMulti",
    "Decoder",
    "Encoder",
    "Partition",
    "StateBuilder",
    "StateComputation",
    "StateComputationMulti",
    "TCPSinkConfig",
    "TCPSourceConfig",
    "WallarooParameterError",
    "computation",
    "computation_multi",
    "decoder",
    "deserialize",
    "encoder",
    "partition",
    "serialize",
    "state_computation",
    "state_computation_multi",
    "tcp_parse_input_addrs",
    "tcp_parse_output_addrs",
]
