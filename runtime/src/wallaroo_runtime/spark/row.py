"""Converts rows of DataFrames to and from JSON objects, the form in which workers receive and return rows."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
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

_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
# Go can read dates only in the form of times.
_WRITTEN = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": _TIME,
    "timestampNTZFormat": _TIME,
    "dateFormat": "yyyy-MM-dd'T00:00:00Z'",
}
# Times and dates are read by the usual rules of Spark's casts, which know each form of ISO 8601.
_READ = {
    "mode": "FAILFAST",
    "timeZone": "UTC",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]['Z']",
    "columnNameOfCorruptRecord": "\0",  # Spark never reads a column of this name, by default `_corrupt_record`
    "maxStringLen": str(2**31 - 1),
}
# Parts of DDL: quoted text; a name, which may be a reserved word; TIMESTAMP in the place of a type.
_DDL = re.compile(
    r"""(?P<quoted>`[^`]*`|'[^']*'|"[^"]*")
    |(?P<before>(?:^|[,<])\s*)(?!(?:interval|timestamp|double|character)\s)(?P<name>\w+)(?=\s+[a-z]|\s*:)
    |\btimestamp\b(?=\s*(?:[,>)]|$|not\s+null\b|comment\b))""",
    re.IGNORECASE | re.VERBOSE,
)
FIELDS = "has the fields"
NO_CAST = "make it from its fields with F.struct; a cast takes fields by their order, not by their names"
_POLICY = "spark.sql.legacy.timeParserPolicy"
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_LEAST = -(1 << 63)
_SECONDS = DayTimeIntervalType(DayTimeIntervalType.SECOND, DayTimeIntervalType.SECOND)
_DIGITS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


def as_object(columns: Sequence[Column]) -> Column:
    """Return one column with the given columns as a JSON object, in bytes."""
    return F.to_json(F.struct(*columns), _WRITTEN).cast("binary")


def rows_of(objects: DataFrame, schema: str, what: str) -> DataFrame:
    """Parse the JSON in the column `value`, an object or an array of objects in bytes, to rows.

    Args:
        schema: The columns of the rows as DDL.
        what: Names the rows in the error.

    Raises:
        RunError: R716, as for `check_times`.
    """
    columns = struct_of(schema)
    check_times(objects.sparkSession, columns, what)
    return objects.select(F.inline(F.from_json(F.col("value").cast("string"), ArrayType(columns), _READ)))


def struct_of(schema: str) -> StructType:
    """Return the columns of a schema in DDL. The session's settings for TIMESTAMP and reserved words have no effect."""
    return cast(StructType, StructType.fromDDL(_DDL.sub(_plain, schema)))


def _plain(match: re.Match[str]) -> str:
    if match["name"]:
        return f"{match['before']}`{match['name']}`"
    return match["quoted"] or "TIMESTAMP_LTZ"


def check_times(session: SparkSession, columns: StructType, what: str) -> None:
    """Refuse a session with Spark 2.4's rules for times in JSON: they change fractions of seconds and days before 1582.

    Args:
        what: Names the rows in the error.

    Raises:
        RunError: R716 if the session has these rules and a column has times or dates.
    """
    if session.conf.get(_POLICY) == "LEGACY" and re.search(r'(?i)type":"(?:date|timestamp)"', columns.json()):
        reason = f"it has times or dates, which {_POLICY} LEGACY changes between Spark and the program"
        raise refused(what, reason, f'spark.conf.set("{_POLICY}", "CORRECTED"), also while the query runs')


def field_of(rows: DataFrame, name: str, what: str) -> StructField | None:
    """Find the column of a DataFrame by its name; None if there is none. `spark.sql.caseSensitive` says if case counts.

    Args:
        what: Names the DataFrame in the error.

    Raises:
        RunError: R716 if several columns have the name.
    """
    is_exact = _is_case_sensitive(rows)
    columns = [each for each in rows.schema.fields if _same(each.name, name, is_exact=is_exact)]
    if len(columns) > 1:
        reason = f'several of its columns have the name "{name}": {", ".join(each.name for each in columns)}'
        raise refused(what, reason, "drop or rename all but one")
    return columns[0] if columns else None


def _same(one: str, other: str, *, is_exact: bool) -> bool:
    return one == other if is_exact else one.lower() == other.lower()


def _is_case_sensitive(rows: DataFrame) -> bool:
    return rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"


def declared_columns(rows: DataFrame, schema: str, what: str) -> list[Column]:
    """Return the columns that a program declares for a DataFrame, cast to the declared types.

    Args:
        schema: The declared columns as DDL.
        what: Names the DataFrame in the error.

    Raises:
        RunError: R716 if a column is missing, or has a type with values that the declared type does not have.
    """
    columns, is_exact = list[Column](), _is_case_sensitive(rows)
    for field in struct_of(schema).fields:
        column = field_of(rows, field.name, what)
        if column is None:
            reason = f'it has no column "{field.name}"; it has {", ".join(rows.columns) or "none"}'
            raise refused(what, reason, "select it under that name, or declare a row without it")
        if lack := _lack(column.dataType, field.dataType, column.name, is_exact=is_exact):
            raise refused(what, lack, NO_CAST if FIELDS in lack else _way_out(rows, column, field.dataType))
        columns.append(F.col(_quoted(column.name)).cast(_with_nulls(field.dataType)).alias(field.name))
    return columns


def _way_out(rows: DataFrame, column: StructField, kind: DataType) -> str:
    """Return the remedy for a column of another type: code with a cast to paste, if Spark has such a cast."""
    session: Any = rows.sparkSession
    # Not by an attempt, because PySpark logs an error of each expression that Spark refuses.
    sql, is_ansi = session._jvm.org.apache.spark.sql, session.conf.get("spark.sql.ansi.enabled") == "true"
    types = (sql.types.DataType.fromJson(each.json()) for each in (column.dataType, _with_nulls(kind)))
    casts = sql.catalyst.expressions.Cast
    if not (casts.canAnsiCast if is_ansi else casts.canCast)(*types):
        return "give it this type before `apply`, or declare another type"
    old = _quoted(column.name) if set(column.name) & set(".`*") else column.name
    new, old, text = (json.dumps(part, ensure_ascii=False) for part in (column.name, old, _ddl(kind)))
    return f"cast it, e.g. .withColumn({new}, F.col({old}).cast({text})), or declare another type"


def _ddl(kind: DataType) -> str:
    """Return a type in DDL that Spark parses under all settings of the session: with names in backquotes."""
    match kind:
        case StructType():
            return f"struct<{', '.join(f'{_quoted(field.name)}: {_ddl(field.dataType)}' for field in kind.fields)}>"
        case ArrayType():
            return f"array<{_ddl(kind.elementType)}>"
        case MapType():
            return f"map<string, {_ddl(kind.valueType)}>"
        case TimestampType():
            return "timestamp_ltz"
    return kind.simpleString()


def place_in_order(rows: DataFrame, name: str, what: str) -> Column:
    """Return a column of sequences (numbers by which workers order messages) in the order of the column `name`.

    A sequence has 64 bits without a sign. Null comes first: its sequence is null.

    Args:
        name: The column that gives the order.
        what: Names the DataFrame in the error.

    Raises:
        RunError: R716 if there is no such column, or its type is neither a time, a date nor an integer.
    """
    field = field_of(rows, name, what)
    if field is None:
        reason = f'it has no column "{name}", which order_by names; it has {", ".join(rows.columns) or "none"}'
        raise refused(what, reason, "give one of these")
    column = F.col(_quoted(field.name))
    number = column.cast(LongType()) if isinstance(field.dataType, _INTEGERS) else micros_of(column, field.dataType)
    if number is None:
        reason = f'its column "{field.name}" is {field.dataType.simpleString()}, which cannot order messages'
        raise refused(what, reason, "order by a time, a date or an integer")
    return number.bitwiseXOR(F.lit(_LEAST))


def micros_of(column: Column, kind: DataType) -> Column | None:
    """Return times or dates as microseconds since 1970, in UTC if they have no zone; None for another type."""
    match kind:
        case TimestampType():
            return F.unix_micros(column)
        case TimestampNTZType():
            # Not `timestamp_diff`, which uses a time zone, where an hour in spring is missing.
            since = column - F.lit("1970-01-01 00:00:00").cast(TimestampNTZType())
            return (since.cast(_SECONDS).cast(DecimalType(20, 6)) * 1_000_000).cast(LongType())
        case DateType():
            return F.unix_date(column).cast(LongType()) * 86_400_000_000
    return None


def _with_nulls(kind: DataType) -> DataType:
    """Return the type with all its parts nullable, since Spark casts nullable values only to nullable types."""
    match kind:
        case StructType():
            return StructType([StructField(field.name, _with_nulls(field.dataType)) for field in kind.fields])
        case ArrayType():
            return ArrayType(_with_nulls(kind.elementType))
        case MapType():
            return MapType(kind.keyType, _with_nulls(kind.valueType))
    return kind


def refused(what: str, reason: str, fix: str) -> RunError:
    """Return the error (R716) that something of a DataFrame, a session or a call cannot be used.

    Args:
        what: Names the thing that is refused.
        reason: The reason, for the message.
        fix: The remedy.
    """
    return RunError.of("R716", USAGE, what=what, reason=reason, fix=fix)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _lack(actual: DataType, declared: DataType, column: str, *, is_exact: bool) -> str:
    """Return the reason why the declared type cannot hold all values of the actual type; empty if it can."""
    match actual, declared:
        case StructType(), StructType():
            return _lack_of_structs(actual, declared, column, is_exact=is_exact)
        case ArrayType(), ArrayType():
            return _lack(actual.elementType, declared.elementType, f"{column}[]", is_exact=is_exact)
        case MapType(), MapType():
            return _lack(actual.keyType, declared.keyType, f"{column}[key]", is_exact=is_exact) or _lack(
                actual.valueType, declared.valueType, f"{column}[]", is_exact=is_exact
            )
    if actual == declared or _is_wider(actual, declared):
        return ""
    return f'its column "{column}" is {actual.simpleString()}; the program declares {declared.simpleString()}'


def _lack_of_structs(actual: StructType, declared: StructType, column: str, *, is_exact: bool) -> str:
    pairs = list(zip(actual.fields, declared.fields, strict=False))
    if len(actual) != len(declared) or not all(_same(one.name, two.name, is_exact=is_exact) for one, two in pairs):
        names = (", ".join(field.name for field in each.fields) for each in (actual, declared))
        return 'its column "{}" {} {}; the program declares {}, in this order'.format(column, FIELDS, *names)
    lacks = (_lack(one.dataType, two.dataType, f"{column}.{two.name}", is_exact=is_exact) for one, two in pairs)
    return next(filter(None, lacks), "")


def _is_wider(actual: DataType, declared: DataType) -> bool:
    """Say whether the declared type, which has no parts, can hold all values of the actual type."""
    if isinstance(actual, CharType | VarcharType):
        return isinstance(declared, StringType)
    if isinstance(declared, DoubleType):
        return isinstance(actual, FloatType | ByteType | ShortType | IntegerType)
    if isinstance(actual, _INTEGERS) and isinstance(declared, _INTEGERS):
        return _INTEGERS.index(type(actual)) <= _INTEGERS.index(type(declared))
    if isinstance(declared, DecimalType):
        whole = declared.precision - declared.scale
        if isinstance(actual, DecimalType):
            return actual.scale <= declared.scale and actual.precision - actual.scale <= whole
        return isinstance(actual, _INTEGERS) and _DIGITS[type(actual)] <= whole
    return False
