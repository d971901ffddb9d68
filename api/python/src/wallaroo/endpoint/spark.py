"""Sources and sinks of Spark, named by their format: files, rate, Delta, JDBC and all others."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from wallaroo.component.application import Source
from wallaroo.component.interface import Decoding, Encoding
from wallaroo.component.row import Rows, types_of
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place
from wallaroo.endpoint.config import MAX_MESSAGE_BYTES, SinkConfig, SourceConfig, decode_of
from wallaroo.message.spark_format import DATAFRAME, EVERYTHING


class SparkSourceConfig(SourceConfig):
    """A source that reads any streaming source of Spark. Each row is a message.

    Args:
        format: Name of the format, e.g. "text", "json", "rate", "delta".
        options: Options of the format; values are converted to text.
        decoder: Object (or class) with `decode(bs)`, which gets the result of `value` as bytes, text in UTF-8. With
            `Rows` as decoder, `value` and `schema` are not needed.
        value: SQL expression over the columns of a row. Its result is the payload of the message, BINARY or STRING. "*"
            makes one JSON object of all columns of `schema`.
        key: SQL expression for the message's key; None for messages without keys.
        timestamp: SQL expression for the message's time: a TIMESTAMP, or an integer in milliseconds since 1970. None
            takes the time of arrival.
        schema: Schema of the rows as DDL, if the format needs a schema.
        name: Name of the source; None takes the pipeline's name.
        on_error: Policy if the decoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Example:
        >>> import wallaroo
        >>> @wallaroo.decoder
        ... def text(bs):
        ...     return bs.decode()
        >>> SparkSourceConfig("text", {"path": "/data/in"}, text).options
        {'path': '/data/in'}
    """

    def __init__(
        self,
        format: str,
        options: Mapping[str, Any],
        decoder: Decoding,
        value: str = "value",
        key: str | None = None,
        timestamp: str | None = None,
        schema: str | None = None,
        *,
        name: str | None = None,
        on_error: str | None = None,
    ) -> None:
        super().__init__(name, on_error)
        if isinstance(decoder, Rows):
            value, schema = EVERYTHING if value == "value" else value, schema or decoder.schema
        self.format, self.options, self.decoder, self.value = format, copy(options), decoder, value
        self.key, self.timestamp, self.schema = key, timestamp, schema

    def declare(self, place: Place, path: str, name: str, decoder: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None."""
        fields: dict[str, Any] = {"format": _text(place, "format", self.format)}
        fields["options"] = option_texts(place, self.options)
        for parameter in ("schema", "value", "key", "timestamp"):
            text = getattr(self, parameter)
            if text is not None:
                fields[parameter] = _text(place, parameter, text)
        fields["max_message_bytes"] = MAX_MESSAGE_BYTES
        decode = decode_of(place, decoder)
        return decode and Source(path, name, "spark", fields, decode, gives_time=self.timestamp is not None)


class SparkSinkConfig(SinkConfig):
    """A sink that writes to any sink of Spark. Each message is a row.

    A micro-batch that is repeated after a failure is written again, unless the format recognizes repeated batches.

    Args:
        format: Name of the format, e.g. "parquet", "json", "delta".
        options: Options of the format; values are converted to text.
        encoder: `Rows`, or an object (or class) with `encode(data)`, which returns bytes or str, or a pair of value and
            key.
        value: SQL select list of the columns to write. It may use the columns `value` and `key`, both BINARY. With
            `Rows` it may use the columns of the rows; by default all of them are written.
        on_error: Policy if the encoder fails, as for `ApplicationBuilder`; None takes the application's policy.

    Example:
        >>> import wallaroo
        >>> @wallaroo.encoder
        ... def encode(order):
        ...     return order["text"], order["symbol"]
        >>> columns = "cast(key AS STRING) AS symbol, value"
        >>> sink = SparkSinkConfig("parquet", {"path": "/data/out"}, encode, columns)
        >>> sink.options, sink.value
        ({'path': '/data/out'}, 'cast(key AS STRING) AS symbol, value')
    """

    def __init__(
        self,
        format: str,
        options: Mapping[str, Any],
        encoder: Encoding,
        value: str = "value",
        *,
        on_error: str | None = None,
    ) -> None:
        super().__init__(encoder, on_error)
        self.schema = encoder.schema if isinstance(encoder, Rows) else ""
        value = EVERYTHING if self.schema and value == "value" else value
        self.format, self.options, self.value = format, copy(options), value

    def fields(self, place: Place) -> tuple[str, dict[str, Any]]:
        """Return the kind of the sink and its fields for the topology document."""
        return "spark", {
            "format": _text(place, "format", self.format),
            "options": option_texts(place, self.options),
            **({"schema": self.schema} if self.schema else {}),
            "value": _text(place, "value", self.value),
        }


class DataFrameSourceConfig(SparkSourceConfig):
    """A DataFrame that a PySpark job passes to `apply` (`wallaroo_runtime.dataframe`). Each row is a message.

    Args:
        row: Columns and their types, as for `Rows`; the DataFrame may have more columns.
        timestamp: As for `SparkSourceConfig`, e.g. the name of a column; windows use this time. None uses the time of
            arrival.
        name: Name of the source, and of the parameter of `apply`; None takes the pipeline's name.
        on_error: Policy if a row does not have these columns, as for `ApplicationBuilder`; None takes the application's
            policy.

    Raises:
        WallarooParameterError: T207, as for `Rows`.

    Example:
        >>> DataFrameSourceConfig({"user": str, "amount": int}).schema
        'user STRING NOT NULL, amount BIGINT NOT NULL'
    """

    def __init__(
        self, row: Any, *, timestamp: str | None = None, name: str | None = None, on_error: str | None = None
    ) -> None:
        types_of(row, "DataFrameSourceConfig")
        super().__init__(DATAFRAME, {}, Rows(row), timestamp=timestamp, name=name, on_error=on_error)


class DataFrameSinkConfig(SparkSinkConfig):
    """A DataFrame that `apply` returns to a PySpark job. Each message becomes a row.

    Args:
        row: Columns and their types, as for `Rows`.
        name: Name of the sink, which `select` and `each` use for its rows; None takes the application's name.
        on_error: Policy if a message does not have these columns, as for `ApplicationBuilder`; None takes the
            application's policy.

    Raises:
        WallarooParameterError: T207, as for `Rows`.

    Example:
        >>> DataFrameSinkConfig({"user": str, "total": int}).schema
        'user STRING NOT NULL, total BIGINT NOT NULL'
    """

    def __init__(self, row: Any, *, name: str | None = None, on_error: str | None = None) -> None:
        types_of(row, "DataFrameSinkConfig")
        super().__init__(DATAFRAME, {}, Rows(row), on_error=on_error)
        self.name = name


def option_texts(place: Place, options: Any) -> dict[str, str]:
    """Return options sorted by name, with values as text; record T207 if `options` is not a dict of options."""
    if not isinstance(options, Mapping) or not all(isinstance(name, str) and name for name in options):
        place.wrong("options", shown(options), "a dict of options", fix='pass a dict, e.g. {"path": "/data/in"}')
        return {}
    texts = {}
    for name in sorted(options):
        value = options[name]
        texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def _text(place: Place, parameter: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        place.wrong(parameter, shown(value), "a text", fix=f"pass {parameter} as a str that is not empty")
    return str(value)
