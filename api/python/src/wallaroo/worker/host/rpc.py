"""Makes clients and servers of gRPC services from the descriptors of the services, without generated stubs."""

from types import SimpleNamespace
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from wallaroo.worker._proto import worker_pb2

WORKER_SERVICE = worker_pb2.DESCRIPTOR.services_by_name["Worker"]


def _kind(method: Any) -> str:
    return "_".join("stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming))


def client(service: Any, channel: grpc.Channel) -> Any:
    """Return a client of a service: an object with a method (a multi-callable of gRPC) for each method of the service.

    Args:
        service: Descriptor of the service.
    """
    return SimpleNamespace(
        **{
            method.name: getattr(channel, _kind(method))(
                f"/{service.full_name}/{method.name}",
                request_serializer=GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            for method in service.methods
        }
    )


def add_service(service: Any, implementation: Any, server: grpc.Server) -> None:
    """Add a service to a server. Calls of methods that `implementation` does not have are answered UNIMPLEMENTED.

    Args:
        service: Descriptor of the service.
        implementation: Object with methods of the same names; each takes the request, or an iterator of requests, and
            the context of the call.
    """
    handlers = {
        method.name: getattr(grpc, f"{_kind(method)}_rpc_method_handler")(
            getattr(implementation, method.name),
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )
        for method in service.methods
        if hasattr(implementation, method.name)
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
