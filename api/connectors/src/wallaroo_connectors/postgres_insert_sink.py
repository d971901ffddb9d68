"""Each message is inserted into a table of PostgreSQL.

    postgres_insert_sink --application-module app --connector out --out-connection "host=db dbname=shop"
        --out-table TABLE [--out-columns A,B]

The decoder must return a tuple or list with a value for each column. Without `--out-columns` the sink fills all columns
of the table. Needs `wallaroo-connectors[postgres]`.

Source: Wallaroo 0.5.3, where it was a template.
"""

from threading import Event
from typing import Any

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import library, row, run_sink, say, values


def serve(connector: SinkConnector, stop: Event) -> None:
    """Insert a row into the table for each message of the application."""
    psycopg, params = library("psycopg", "postgres"), connector.params
    with psycopg.connect(params.connection, autocommit=True) as database:
        connector.listen()
        say(f"inserting into {params.table}")
        for value in values(connector, stop):
            fields = row(value)
            database.execute(_statement(psycopg.sql, params, len(fields)), fields)


def _statement(sql: Any, params: Any, count: int) -> Any:
    columns = [sql.Identifier(name.strip()) for name in params.columns.split(",")] if params.columns else []
    named = sql.SQL(" ({})").format(sql.SQL(", ").join(columns)) if columns else sql.SQL("")
    table = sql.Identifier(*params.table.split("."))
    places = sql.SQL(", ").join([sql.Placeholder()] * count)
    return sql.SQL("INSERT INTO {}{} VALUES ({})").format(table, named, places)


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["connection", "table"], ["columns"])
