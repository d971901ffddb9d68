"""Rows as JSON objects: the form in which workers take and give them."""

from collections.abc import Sequence
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from wallaroo_runtime.errors import USAGE, RunError

EVERYTHING = "*"  # in the place of the SQL of a message: all columns
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
# Go reads a date as a time, too, and cannot read another form.
_WRITTEN = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": _TIME,
    "timestampNTZFormat": _TIME,
    "dateFormat": "yyyy-MM-dd'T00:00:00Z'",
}
# Times and dates are read by the usual rules of Spark's casts, which know each form of ISO 8601.
_READ = {"mode": "FAILFAST", "timeZone": "UTC", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]['Z']"}
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
# Times since the year 1, which is 719162 days before 1970; integers of up to 62 bits and a sign.
_ORDERS = (
    (TimestampType, "unix_micros({}) + 62135596800000000 + 1"),
    (TimestampNTZType, "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'0001-01-01 00:00:00', {}) + 1"),
    (DateType, "CAST(unix_date({}) AS BIGINT) + 719162 + 1"),
    (_INTEGERS, "CAST({} AS BIGINT) + 4611686018427387904"),
)
_DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


def as_object(columns: Sequence[Column]) -> Column:
    """Return columns as one JSON object, in bytes."""
    return F.to_json(F.struct(*columns), _WRITTEN).cast("binary")


def of_object(value: Column, schema: str) -> Column:
    """Return the columns of a JSON object in bytes, as a struct.

    Args:
        schema: As DDL.
    """
    return F.from_json(value.cast("string"), _struct(schema), _READ)


def _struct(schema: str) -> StructType:
    return cast(StructType, StructType.fromDDL(schema))


def declared_columns(rows: DataFrame, schema: str, what: str) -> list[Column]:
    """Return those columns of a DataFrame that a program declares, with the declared types.

    Args:
        schema: The declared ones, as DDL.
        what: Names the DataFrame to people.

    Raises:
        RunError: R716, a column is missing, or its type may hold what the declared one does not.
    """
    given = {name.lower(): field for name, field in zip(rows.columns, rows.schema.fields, strict=True)}
    columns = []
    for field in _struct(schema).fields:
        found = given.get(field.name.lower())
        if found is None:
            reason = f'it has no column "{field.name}"; it has {", ".join(rows.columns) or "none"}'
            raise _refused(what, reason, "select it under that name, or declare a row without it")
        if lack := _lack(found.dataType, field.dataType, found.name):
            name, kind = found.name, field.dataType.simpleString()
            code = f'.withColumn("{name}", F.col("{name}").cast("{kind}"))'
            raise _refused(what, lack, f"cast it, e.g. {code}, or declare another type")
        columns.append(F.col(_quoted(found.name)).cast(_with_nulls(field.dataType)).alias(field.name))
    return columns


def place_in_order(rows: DataFrame, name: str, what: str) -> Column:
    """Return the sequences that put rows in the order of a column, null first: numbers from 0 on.

    Args:
        what: Names the DataFrame to people.

    Raises:
        RunError: R716, there is no such column, or its type gives no order.
    """
    field = next((each for each in rows.schema.fields if each.name.lower() == name.lower()), None)
    if field is None:
        raise _refused(
            what, f'it has no column "{name}"; it has {", ".join(rows.columns) or "none"}', "give one of these"
        )
    form = next((sql for kinds, sql in _ORDERS if isinstance(field.dataType, kinds)), None)
    if form is None:
        reason = f'its column "{field.name}" is {field.dataType.simpleString()}, which gives no order of messages'
        raise _refused(what, reason, "order by a time, a date or an integer")
    return F.expr(f"coalesce({form.format(_quoted(field.name))}, CAST(0 AS BIGINT))")


def _with_nulls(kind: DataType) -> DataType:
    """Return a type whose parts may be null: Spark casts nothing to one where they may not."""
    match kind:
        case StructType():
            return StructType([StructField(field.name, _with_nulls(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(_with_nulls(kind.elementType))
        case MapType():
            return MapType(kind.keyType, _with_nulls(kind.valueType))
    return kind


def _refused(what: str, reason: str, fix: str) -> RunError:
    return RunError.of("R716", USAGE, what=what, reason=reason, fix=fix)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _lack(given: DataType, declared: DataType, place: str) -> str:
    """Return why values of a type may not be values of another; empty: they are."""
    match given, declared:
        case StructType(), StructType():
            return _lack_of_structs(given, declared, place)
        case ArrayType(), ArrayType():
            return _lack(given.elementType, declared.elementType, f"{place}[]")
        case MapType(), MapType():
            return _lack(given.keyType, declared.keyType, f"{place}[key]") or _lack(
                given.valueType, declared.valueType, f"{place}[]"
            )
    if given == declared or _is_wider(given, declared):
        return ""
    return f'its column "{place}" is {given.simpleString()}; the program declares {declared.simpleString()}'


def _lack_of_structs(given: StructType, declared: StructType, place: str) -> str:
    inner: dict[str, StructField] = {field.name.lower(): field for field in given.fields}
    if [field.name.lower() for field in declared.fields] != list(inner):
        names = (", ".join(field.name for field in each.fields) for each in (given, declared))
        return 'its column "{}" has the fields {}; the program declares {}, in this order'.format(place, *names)
    types = ((each.name, inner[each.name.lower()].dataType, each.dataType) for each in declared.fields)
    lacks = (_lack(found, wanted, f"{place}.{name}") for name, found, wanted in types)
    return next(filter(None, lacks), "")


def _is_wider(given: DataType, declared: DataType) -> bool:
    """Say whether a simple type holds all values of another one."""
    if isinstance(given, CharType | VarcharType):
        return isinstance(declared, StringType)
    if isinstance(declared, DoubleType):
        return isinstance(given, FloatType | ByteType | ShortType | IntegerType)
    if isinstance(given, _INTEGERS) and isinstance(declared, _INTEGERS):
        return _INTEGERS.index(type(given)) <= _INTEGERS.index(type(declared))
    if isinstance(declared, DecimalType):
        whole = declared.precision - declared.scale
        if isinstance(given, DecimalType):
            return given.scale <= declared.scale and given.precision - given.scale <= whole
        return isinstance(given, _INTEGERS) and _DIGITS[type(given)] <= whole
    return False
