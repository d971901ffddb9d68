"""Configs for connectors: separate programs that bring messages to an application, or take its output."""

from typing import Any

from wallaroo.check import check
from wallaroo.component.application import Source
from wallaroo.diagnostic.error import Place
from wallaroo.endpoint.config import MAX_MESSAGE_BYTES, decode_of
from wallaroo.endpoint.tcp import TCPSinkConfig, TCPSourceConfig

__all__ = ["SinkConnectorConfig", "SourceConnectorConfig"]
LOCAL = "127.0.0.1"
SOURCE_PORT, SINK_PORT = 7100, 7200
MAX_CREDITS, REFILL_CREDITS = 100_000, 50_000


class SourceConnectorConfig(TCPSourceConfig):
    """A source that listens for a connector: a separate program that connects, and sends messages.

    Without a cookie the connector sends frames of `stream_message_encoder` (Wallaroo 0.5 and 0.6) and gets no
    acknowledgements. With a cookie the connector speaks the connector protocol: each message is acknowledged when it
    has been processed, and a connector that connects again learns where to continue.

    There are two orders of parameters: `(host, port, decoder)`, and `(name, encoder, decoder, port, ...)`.

    Args:
        name: Name of the connector.
        encoder: Encodes messages in the connector program.
        decoder: Decodes these messages in the application.
        port: Port as text or number.
        host: Host name or address to listen at.
        cookie: Shared word that the connector must send. None means that it does not speak the connector protocol.
        max_credits: How many messages the connector may send before it gets new credits.
        refill_credits: The connector gets new credits when it has fewer credits than this number.
        on_error: Policy if the decoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Raises:
        TypeError: The arguments fit neither order of parameters.

    Example:
        >>> from wallaroo.experimental import octet_message_decoder, octet_message_encoder
        >>> encode, decode = octet_message_encoder(str.encode), octet_message_decoder(bytes.decode)
        >>> feed = SourceConnectorConfig("feed", encode, decode, 7100, cookie="word", max_credits=10, refill_credits=4)
        >>> feed.name, feed.host, feed.cookie, feed.credits
        ('feed', '127.0.0.1', 'word', (10, 4))

    Source: Wallaroo 0.5.4, 0.6.1, and its unreleased version, which has the cookie.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        on_error = keywords.pop("on_error", None)
        if len(args) == 3 and not keywords:
            host, port, decoder = args
            name, encoder, cookie, credits = None, None, None, (MAX_CREDITS, REFILL_CREDITS)
        else:
            form = _with_cookie if "cookie" in keywords or len(args) > 5 else _plain
            name, encoder, decoder, port, cookie, credits, host = form(*args, **keywords)
        super().__init__(host, port, decoder, name=name, on_error=on_error)
        self.encoder, self.cookie, self.credits = encoder, cookie, credits
        self.decorator = f"experimental.{'stream' if cookie is None else 'octet'}_message_decoder"

    def declare(self, place: Place, path: str, name: str, decoder: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None."""
        if self.cookie is None:
            return super().declare(place, path, name, decoder)
        host, port = check.address(place, "source", self.host, self.port, self.location)
        most, least = self.credits
        fields = {
            "host": host, "port": port, "cookie": self.cookie, "max_credits": most, "refill_credits": least,
            "max_message_bytes": MAX_MESSAGE_BYTES,
        }  # fmt: skip
        if not 1 <= least <= most <= 1_000_000:
            expected = "1 to max_credits, at most 1000000"
            place.wrong("refill_credits", f"{least} of {most}", expected, fix="leave both out")
        decode = decode_of(place, decoder)
        return decode and Source(path, name, "connector", fields, decode, gives_time=True)


class SinkConnectorConfig(TCPSinkConfig):
    """A sink that sends to a connector: the connector listens, and the application connects to it.

    Without a cookie the connector gets frames of `stream_message_encoder` (Wallaroo 0.5 and 0.6). Bytes count as
    delivered when the connector's TCP has acknowledged them. With a cookie the connector speaks the connector protocol,
    and gets each message exactly once, in transactions: see `TransactionalSinkConnector`.

    There are two orders of parameters: `(host, port, encoder)`, and `(name, encoder, decoder, port, ...)`.

    Args:
        name: Name of the connector.
        encoder: Encodes messages in the application.
        decoder: Decodes these messages in the connector program.
        port: Port as text or number.
        host: Host name or address of the connector.
        cookie: Shared word that the application sends. None means that the connector does not speak the protocol.
        on_error: Policy if the encoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Raises:
        TypeError: The arguments fit neither order of parameters.

    Example:
        >>> from wallaroo.experimental import stream_message_decoder, stream_message_encoder
        >>> encode, decode = stream_message_encoder(str.encode), stream_message_decoder(bytes.decode)
        >>> out = SinkConnectorConfig("out", encode, decode, 7200, host="sink.local")
        >>> out.name, out.host, out.cookie
        ('out', 'sink.local', None)

    Source: Wallaroo 0.5.4, 0.6.1, and its unreleased version, which has the cookie.
    """

    def __init__(self, *args: Any, on_error: str | None = None, **keywords: Any) -> None:
        self.name: str | None = None
        self.decoder: Any = None
        self.cookie: str | None = None
        if len(args) == 3 and not keywords:
            host, port, encoder = args
        else:
            form = _with_cookie if "cookie" in keywords or len(args) > 5 else _plain
            self.name, encoder, self.decoder, port, self.cookie, _, host = form(*args, **keywords)
        super().__init__(host, port, encoder, on_error=on_error)
        self.decorator = f"experimental.{'stream' if self.cookie is None else 'octet'}_message_encoder"

    def fields(self, place: Place) -> tuple[str, dict[str, Any]]:
        """Return the kind of the sink, and its address and cookie as fields for the topology document."""
        kind, fields = super().fields(place)
        if self.cookie is None:
            return kind, fields
        return "connector", fields | {"cookie": self.cookie}


def _plain(name: str, encoder: Any, decoder: Any, port: str | int, host: str = LOCAL) -> tuple[Any, ...]:
    return name, encoder, decoder, port, None, (MAX_CREDITS, REFILL_CREDITS), host


def _with_cookie(
    name: str, encoder: Any, decoder: Any, port: str | int, cookie: str, max_credits: int = MAX_CREDITS,
    refill_credits: int = REFILL_CREDITS, host: str = LOCAL,
) -> tuple[Any, ...]:  # fmt: skip
    return name, encoder, decoder, port, cookie, (max_credits, refill_credits), host


def hint_of(connectors: Any) -> str:
    """Return the names of the declared connectors as a part of the error about an unknown name."""
    return f"; there are {', '.join(sorted(connectors))}" if connectors else "; there are none"
