"""The API of Goka (a Go library for Kafka), run by Wallaroo's engine: groups of callbacks, each with a table."""

from wallaroo.goka.application import application
from wallaroo.goka.codec import Bytes, Codec, Int64, Json, String
from wallaroo.goka.context import Context
from wallaroo.goka.edge import Edge, group_table, input, inputs, join, lookup, loop, output, persist, visitor
from wallaroo.goka.emitter import Delivered, Emitter
from wallaroo.goka.error import CallbackError, CodecError, EmitterClosedError, ViewError
from wallaroo.goka.graph import GroupGraph, define_group
from wallaroo.goka.partitioner import partition_of
from wallaroo.goka.state import GroupState
from wallaroo.goka.update import Storage, Update, default_update
from wallaroo.goka.view import View, ViewState

__all__ = [
    "Bytes",
    "CallbackError",
    "Codec",
    "CodecError",
    "Context",
    "Delivered",
    "Edge",
    "Emitter",
    "EmitterClosedError",
    "GroupGraph",
    "GroupState",
    "Int64",
    "Json",
    "Storage",
    "String",
    "Update",
    "View",
    "ViewError",
    "ViewState",
    "application",
    "default_update",
    "define_group",
    "group_table",
    "input",
    "inputs",
    "join",
    "lookup",
    "loop",
    "output",
    "partition_of",
    "persist",
    "visitor",
]
