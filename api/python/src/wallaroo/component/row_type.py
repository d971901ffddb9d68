"""The types of columns: Spark's type for an annotation of Python, and the conversion of values to JSON and back."""

import base64
import dataclasses
import math
import struct
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from wallaroo.component.row_error import MisfitError, NoColumnTypeError
from wallaroo.diagnostic.diagnostic import shown

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
MOST_DIGITS = 38
MOST_KEY_BYTES = 50_000  # the query ends if Spark's parser of JSON gets a longer key
INFINITIES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type of a column, or of a part of a column.

    Attributes:
        sql: The type in Spark's DDL.
        read: Converts JSON to a value; raises ValueError if the JSON does not fit.
        write: Converts a value to JSON; raises ValueError if the value does not fit.
        nullable: Whether the value may be null.
    """

    sql: str
    read: Convert
    write: Convert
    nullable: bool = False

    @property
    def ddl(self) -> str:
        """The type in Spark's DDL, with NOT NULL if the value must not be null."""
        return self.sql if self.nullable else f"{self.sql} NOT NULL"


def type_of(annotation: Any) -> ColumnType:
    """Return the type of the column that has an annotation of Python.

    Raises:
        NoColumnTypeError: There is no such type.

    Example:
        >>> type_of(int).ddl, type_of(list[str] | None).ddl
        ('BIGINT NOT NULL', 'ARRAY<STRING>')
    """
    annotation, sql = _parts(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [each for each in get_args(annotation) if each is not type(None)]
        if len(rest) != 1 or len(rest) == len(get_args(annotation)):
            reason = f"{_shown(annotation)} has several types"
            raise NoColumnTypeError(reason)
        column = type_of(Annotated[rest[0], sql] if sql else rest[0])
        return ColumnType(column.sql, _nullable(column.read), _nullable(column.write), nullable=True)
    if isinstance(annotation, type) and annotation in SIMPLE:
        return _simple(annotation, sql)
    if sql:
        reason = f"{_shown(annotation)} cannot be {sql}"
        raise NoColumnTypeError(reason)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is list and len(inner) == 1:
        optional = f"list[{_shown(inner[0])} | None]"
        return _collection("ARRAY<", (list, tuple), (_listed, _listed), type_of(inner[0]), optional)
    if origin is dict and len(inner) == 2 and inner[0] is str:
        optional = f"dict[str, {_shown(inner[1])} | None]"
        return _collection("MAP<STRING, ", (dict,), (_mapped, _written_map), type_of(inner[1]), optional)
    if (columns := columns_of(annotation)) is not None:
        return _struct(annotation, columns)
    reason = f"{_shown(annotation)} is no type of a column"
    raise NoColumnTypeError(reason)


def _parts(annotation: Any) -> tuple[Any, str]:
    """Split `Annotated[TYPE, "SPARK'S TYPE"]` into its parts. For other annotations the second part is empty."""
    if get_origin(annotation) is not Annotated:
        return annotation, ""
    inner, *extra = get_args(annotation)
    return inner, next((each.upper().replace(" ", "") for each in extra if isinstance(each, str)), "")


def columns_of(row: Any) -> dict[str, Any] | None:
    """Return the annotation of each column; None if `row` is no dataclass, NamedTuple, TypedDict or dict."""
    if isinstance(row, Mapping):
        return dict(row)
    if not isinstance(row, type):
        return None
    if dataclasses.is_dataclass(row):
        hints = get_type_hints(row, include_extras=True)
        return {field.name: hints[field.name] for field in dataclasses.fields(row) if field.init}
    if typing.is_typeddict(row) or (issubclass(row, tuple) and hasattr(row, "_fields")):
        return get_type_hints(row, include_extras=True)
    return None


def quoted(name: str) -> str:
    """Return the name of a column in Spark's DDL: in backquotes, unless it is an identifier.

    Example:
        >>> quoted("user"), quoted("first name")
        ('user', '`first name`')
    """
    return name if name.isascii() and name.isidentifier() else "`" + name.replace("`", "``") + "`"


def row_functions(row: Any, columns: Mapping[str, ColumnType]) -> tuple[Convert, Convert]:
    """Return the function that makes a message from an object of JSON, and the reverse function."""
    readers = [(name, column.read, column.nullable) for name, column in columns.items()]
    writers = [(name, column.write) for name, column in columns.items()]
    is_dict, expected = isinstance(row, Mapping) or typing.is_typeddict(row), _shown(row)

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise _wrong(value, "an object")
        fields = {}
        for name, convert, nullable in readers:
            field = value.get(name)
            if field is None and not nullable:
                reason = f"is {'null' if name in value else 'missing'}; declare it Optional to take that"
                raise MisfitError(reason, name)
            try:
                fields[name] = convert(field)
            except (ValueError, OverflowError) as error:
                raise MisfitError.within(name, error) from None
        return fields if is_dict else row(**fields)

    def write(message: Any) -> dict[str, Any]:
        if is_dict:
            if not isinstance(message, dict):
                raise _wrong(message, "a dict")
            if unknown := message.keys() - columns.keys():
                reason = f"the row has no column {shown(min(map(str, unknown)))}; it has {', '.join(columns)}"
                raise MisfitError(reason)
        elif not isinstance(message, row):
            raise _wrong(message, expected)
        written = {}
        for name, convert in writers:
            try:
                written[name] = convert(message.get(name) if is_dict else getattr(message, name))
            except (ValueError, OverflowError) as error:
                raise MisfitError.within(name, error) from None
        return written

    return read, write


def _wrong(value: Any, expected: str) -> MisfitError:
    if value is None:
        return MisfitError(f"is null; expected {expected}, or declare it Optional")
    return MisfitError(f"has {shown(value)} ({type(value).__name__}); expected {expected}")


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _collection(
    sql: str, kinds: tuple[type, ...], made: Sequence[Callable[[Convert, Any], Any]], item: ColumnType, optional: str
) -> ColumnType:
    """Return the type of a list or dict.

    Args:
        sql: Begin of the type in Spark's DDL.
        kinds: Types of Python that values may have.
        made: Two functions that convert all items of a value, for reading and for writing.
        item: Type of the items.
        optional: Annotation that the error recommends if an item is None.
    """

    def each(convert: Convert, made: Callable[[Convert, Any], Any]) -> Convert:
        def converted(value: Any) -> Any:
            if not isinstance(value, kinds):
                raise _wrong(value, f"a {kinds[0].__name__}")
            try:
                return made(convert, value)
            except ValueError as error:
                raise _first(error, convert, value, optional) from None

        return converted

    return ColumnType(f"{sql}{item.sql}>", each(item.read, made[0]), each(item.write, made[1]))


def _listed(convert: Convert, items: Any) -> list[Any]:
    return [convert(item) for item in items]


def _mapped(convert: Convert, items: Any) -> dict[str, Any]:
    return {_text(key): convert(item) for key, item in items.items()}


def _written_map(convert: Convert, items: Any) -> dict[str, Any]:
    written = _mapped(convert, items)
    for key in written:
        if 4 * len(key) > MOST_KEY_BYTES and (size := len(key.encode())) > MOST_KEY_BYTES:
            reason = f"has a key of {size:,} bytes; a key of a MAP has at most {MOST_KEY_BYTES:,}"
            raise MisfitError(reason)
    return written


def _first(error: ValueError, convert: Convert, items: Any, optional: str) -> ValueError:
    """Return the error of the first item of a list or dict that does not fit; `error` if all items fit."""
    for key, item in items.items() if isinstance(items, dict) else enumerate(items):
        try:
            convert(item)
        except ValueError as found:
            misfit = MisfitError(f"is null; declare {optional} to take that") if item is None else found
            return MisfitError.within(f"[{shown(key)}]", misfit)
    return error


def _struct(row: Any, annotations: Mapping[str, Any]) -> ColumnType:
    columns = {name: type_of(annotation) for name, annotation in annotations.items()}
    sql = ", ".join(f"{quoted(name)}: {column.ddl}" for name, column in columns.items())
    return ColumnType(f"STRUCT<{sql}>", *row_functions(row, columns))


def _simple(kind: type, sql: str) -> ColumnType:
    usual, others, functions = SIMPLE[kind]
    chosen = sql or usual
    if chosen.partition("(")[0] not in (usual.partition("(")[0], *others):
        reason = f"{kind.__name__} cannot be {chosen}; it can be {', '.join((usual, *others))}"
        raise NoColumnTypeError(reason)
    return ColumnType(chosen, *functions(chosen))


def _same(check: Convert) -> Callable[[str], tuple[Convert, Convert]]:
    return lambda sql: (check, check)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _wrong(value, "str")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            reason = f"is no text that UTF-8 can hold: {error.reason}"
            raise MisfitError(reason) from None
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _wrong(value, "bool")
    return value


def _integers(sql: str) -> tuple[Convert, Convert]:
    most = 1 << (INTEGERS[sql] - 1)

    def check(value: Any) -> int:
        if type(value) is not int:
            raise _wrong(value, "int")
        if not -most <= value < most:
            raise _wrong(value, f"int of {sql}, {INTEGERS[sql]} bits")
        return value

    return check, check


def _floats(sql: str) -> tuple[Convert, Convert]:
    def read(value: Any) -> float:
        if type(value) is str and value in INFINITIES:
            return INFINITIES[value]
        if type(value) not in (float, int, Decimal):
            raise _wrong(value, "float")
        return float(value)

    def write(value: Any) -> Any:
        if type(value) not in (float, int):
            raise _wrong(value, "float")
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        held = float(value)
        if sql == "FLOAT":
            try:
                (held,) = struct.unpack("<f", struct.pack("<f", value))
            except OverflowError:
                raise _wrong(value, "float of FLOAT, 32 bits") from None
        if type(value) is int and held != value:
            raise _wrong(value, f"float, or an int that {sql} holds without rounding")
        return float(value)

    return read, write


def _decimals(sql: str) -> tuple[Convert, Convert]:
    try:
        precision, scale = map(int, sql.partition("(")[2].rstrip(")").split(","))
    except ValueError:
        precision, scale = -1, 0
    if not (0 <= scale <= precision <= MOST_DIGITS and precision > 0):
        reason = f"{sql} is no type: write DECIMAL(DIGITS,DIGITS AFTER THE POINT), at most DECIMAL(38,38)"
        raise NoColumnTypeError(reason)

    def read(value: Any) -> Decimal:
        if type(value) is float:  # callers that need all digits parse JSON with `parse_float=Decimal`
            return Decimal(repr(value))
        if type(value) not in (int, str, Decimal):
            raise _wrong(value, "Decimal")
        try:
            return Decimal(value)
        except ArithmeticError:
            raise _wrong(value, "Decimal") from None

    def write(value: Any) -> str:
        if type(value) is not Decimal or not value.is_finite():
            raise _wrong(value, "Decimal")
        if not value:
            return "0"
        if -scale <= value.adjusted() < precision - scale:
            text = format(value, "f")
            if len(text.partition(".")[2].rstrip("0")) <= scale:
                return text
        raise _wrong(value, f"Decimal that {sql} holds without rounding")

    return read, write


def _bytes(_: str) -> tuple[Convert, Convert]:
    def read(value: Any) -> bytes:
        try:
            return base64.b64decode(value, validate=True)
        except (ValueError, TypeError):
            raise _wrong(value, "a text in base64") from None

    def write(value: Any) -> str:
        if not isinstance(value, (bytes, bytearray)):
            raise _wrong(value, "bytes")
        return base64.b64encode(value).decode()

    return read, write


def _times(sql: str) -> tuple[Convert, Convert]:
    has_zone = sql == "TIMESTAMP"

    def read(value: Any) -> datetime:
        try:
            time = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except (ValueError, AttributeError):
            raise _wrong(value, "a time, e.g. 2026-01-31T12:00:00.000000Z") from None
        if time.tzinfo is None:
            time = time.replace(tzinfo=timezone.utc)
        return time if has_zone else time.astimezone(timezone.utc).replace(tzinfo=None)

    def write(value: Any) -> str:
        if not isinstance(value, datetime):
            raise _wrong(value, "datetime")
        if (value.utcoffset() is not None) != has_zone:
            raise _wrong(value, f"datetime {'with' if has_zone else 'without'} a zone, for {sql}")
        return (value.astimezone(timezone.utc).replace(tzinfo=None) if has_zone else value).isoformat() + "Z"

    return read, write


def _dates(_: str) -> tuple[Convert, Convert]:
    def read(value: Any) -> date:
        try:
            return date.fromisoformat(value[:10])
        except (ValueError, TypeError):
            raise _wrong(value, "a date, e.g. 2026-01-31") from None

    def write(value: Any) -> str:
        if type(value) is not date:
            raise _wrong(value, "date")
        return value.isoformat()

    return read, write


# By type of Python: usual type in Spark, others that an annotation may choose, function that makes `read` and `write`.
SIMPLE: dict[type, tuple[str, tuple[str, ...], Callable[[str], tuple[Convert, Convert]]]] = {
    str: ("STRING", (), _same(_text)),
    bool: ("BOOLEAN", (), _same(_bool)),
    int: ("BIGINT", ("INT", "SMALLINT", "TINYINT"), _integers),
    float: ("DOUBLE", ("FLOAT",), _floats),
    Decimal: ("DECIMAL(38,18)", (), _decimals),
    bytes: ("BINARY", (), _bytes),
    datetime: ("TIMESTAMP", ("TIMESTAMP_NTZ",), _times),
    date: ("DATE", (), _dates),
}
