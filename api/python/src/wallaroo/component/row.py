"""`Rows`: the decoder and encoder between rows of Spark and messages."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from wallaroo.component.row_error import MisfitError, NoColumnTypeError
from wallaroo.component.row_type import (
    SIMPLE,
    ColumnType,
    columns_of,
    quoted,
    row_functions,
    type_of,
)
from wallaroo.component.signature import shown_name
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import WallarooParameterError

FORMS = "a dataclass, a NamedTuple, a TypedDict, or a dict of column and type"
TYPES = (
    f"{', '.join(kind.__name__ for kind in SIMPLE)}, list[T], dict[str, T], a row, or one of them or None; "
    'Annotated[int, "INT"] chooses another type of Spark'
)


def types_of(row: Any, method: str) -> dict[str, ColumnType]:
    """Return the types of the columns that a program declares for a row, by name.

    Args:
        row: As for `Rows`.
        method: What the user has called, for the error.

    Raises:
        WallarooParameterError: T207, as for `Rows`.
    """
    annotations = columns_of(row)
    if not annotations or not all(isinstance(name, str) and name for name in annotations):
        raise WallarooParameterError.of(
            method=method, parameter="row", actual=shown(row), expected=FORMS, fix=f"pass {FORMS}"
        )
    columns = {}
    for name, annotation in annotations.items():
        try:
            columns[name] = type_of(annotation)
        except NoColumnTypeError as error:
            raise WallarooParameterError.of(
                method=method, parameter="row", actual=f'column "{name}": {error}',
                expected="a type that Spark has", fix=f"use {TYPES}",
            ) from None  # fmt: skip
    if len({name.lower() for name in columns}) < len(columns):
        raise WallarooParameterError.of(
            method=method, parameter="row", actual=f"columns {', '.join(columns)}",
            expected="columns whose names differ in more than case", fix="rename one of them",
        )  # fmt: skip
    return columns


class Rows:
    """Converts between rows and messages: decoder and encoder for Spark's sources and sinks.

    Args:
        row: Columns and their types: a dataclass, NamedTuple or TypedDict, whose objects are the messages; or a dict
            from column to type, with dicts as messages.

    Attributes:
        schema: The columns in Spark's DDL.

    Raises:
        WallarooParameterError: T207 if `row` is none of these, or a column has a type that Spark does not have.

    Types are `str` (STRING), `bool` (BOOLEAN), `int` (BIGINT), `float` (DOUBLE), `decimal.Decimal` (DECIMAL(38,18)),
    `bytes` (BINARY), `datetime.datetime` (TIMESTAMP, with a zone), `datetime.date` (DATE), `list[T]` (ARRAY),
    `dict[str, T]` (MAP), and rows in rows (STRUCT). `T | None` accepts null; in any other column null makes the message
    a dead letter. `Annotated[int, "INT"]` chooses another type: SMALLINT, TINYINT, FLOAT, DECIMAL(10,2), TIMESTAMP_NTZ.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Order:
        ...     user: str
        ...     amount: int
        ...     note: str | None
        >>> orders = Rows(Order)
        >>> orders.schema
        'user STRING NOT NULL, amount BIGINT NOT NULL, note STRING'
        >>> orders.decode(b'{"user": "ann", "amount": 3, "note": null}')
        Order(user='ann', amount=3, note=None)
        >>> orders.encode(Order("bob", 4, "gift"))
        b'{"user":"bob","amount":4,"note":"gift"}'
    """

    def __init__(self, row: Any) -> None:
        self.row = row
        columns = types_of(row, "Rows")
        self.schema = ", ".join(f"{quoted(name)} {column.ddl}" for name, column in columns.items())
        self._read, self._write = row_functions(row, columns)
        # Decimals lose digits if they are read as floats.
        self._floats: Any = Decimal if "DECIMAL" in self.schema else None

    def name(self) -> str:
        """Return the name of the row's class, or "rows" if the row is a dict."""
        return "rows" if isinstance(self.row, Mapping) else shown_name(self.row)

    def decode(self, bs: bytes) -> Any:
        """Return the message for a row.

        Raises:
            ValueError: The row does not have these columns; the error names the wrong column.
        """
        value = json.loads(bs, parse_float=self._floats)
        try:
            return self._read(value)
        except MisfitError as error:
            raise ValueError(str(error)) from None

    def encode(self, data: Any) -> bytes:
        """Return the row for a message.

        Raises:
            ValueError: The message does not have these columns; the error names the wrong column.
        """
        try:
            row = self._write(data)
        except MisfitError as error:
            raise ValueError(str(error)) from None
        return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode()
