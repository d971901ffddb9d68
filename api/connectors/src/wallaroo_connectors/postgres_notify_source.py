"""Each notification on a channel of PostgreSQL becomes a message. With a table, each inserted row becomes a message.

    postgres_notify_source --application-module app --connector feed --feed-connection "host=db dbname=shop"
        [--feed-channel CHANNEL] [--feed-table TABLE]

The default channel is `wallaroo`. If a table is named, the program creates a trigger on it, which notifies the channel
of each new row, as JSON of at most 7,999 bytes. PostgreSQL does not keep notifications while the program does not run.
Needs `wallaroo-connectors[postgres]`.

Source: Wallaroo 0.5.3, where it was a template.
"""

from threading import Event
from typing import Any

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, library, run_source, say

NAME = "wallaroo_notify"
FUNCTION = f"""
CREATE OR REPLACE FUNCTION {NAME}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_ARGV[0], row_to_json(NEW)::text);
    RETURN NEW;
END $$
"""
TRIGGER = f"""
CREATE OR REPLACE TRIGGER {{name}} AFTER INSERT ON {{table}} FOR EACH ROW
EXECUTE FUNCTION {NAME}({{channel}})
"""


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the notifications."""
    psycopg, params = library("psycopg", "postgres"), connector.params
    channel = params.channel or "wallaroo"
    with psycopg.connect(params.connection, autocommit=True) as database:
        connect(connector, stop)
        if params.table:
            _notify(psycopg.sql, database, params.table, channel)
        database.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
        say(f"listening on {channel}")
        while not stop.is_set():
            for notification in database.notifies(timeout=LOOK_S):
                connector.write(notification.payload.encode())


def _notify(sql: Any, database: Any, table: str, channel: str) -> None:
    with database.transaction():
        database.execute(FUNCTION)
        database.execute(
            sql.SQL(TRIGGER).format(
                name=sql.Identifier(f"{NAME}_{channel}"),
                table=sql.Identifier(*table.split(".")),
                channel=sql.Literal(channel),
            )
        )


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["connection"], ["channel", "table"])
