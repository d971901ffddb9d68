"""Takes output into a table of SQLite, each message exactly once: a sink that speaks the connector protocol.

python sqlite_sink.py --application-module app.py --connector out --out-file out.sqlite
"""

import sqlite3

from wallaroo import experimental
from wallaroo.diagnostic.fault import reach

TABLES = """
CREATE TABLE IF NOT EXISTS result (number INTEGER PRIMARY KEY, text TEXT);
CREATE TABLE IF NOT EXISTS sender (name TEXT PRIMARY KEY, committed INTEGER);
CREATE TABLE IF NOT EXISTS prepared (sender TEXT, name TEXT, end INTEGER, PRIMARY KEY (sender, name));
CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, sender TEXT, name TEXT, text TEXT);
"""


class Table(experimental.TransactionalTarget):
    """A file of SQLite; what is prepared waits in a table of its own."""

    def __init__(self, file, decode):
        self.database = sqlite3.connect(file)
        self.decode, self.is_choosy = decode, True
        self.database.executescript(TABLES)

    def committed(self, sender):
        found = self.database.execute("SELECT committed FROM sender WHERE name = ?", [sender]).fetchone()
        return found[0] if found else 0

    def prepared(self, sender):
        return dict(self.database.execute("SELECT name, end FROM prepared WHERE sender = ?", [sender]))

    def prepare(self, sender, name, end, messages):
        reach("sink.before_prepare")
        if self.is_choosy and any(self.decode(message) == "odd" for message in messages):
            self.is_choosy = False  # the next time it is taken
            return False
        with self.database as database:
            database.execute("INSERT INTO prepared VALUES (?, ?, ?)", [sender, name, end])
            rows = [(sender, name, self.decode(message)) for message in messages]
            database.executemany("INSERT INTO waiting (sender, name, text) VALUES (?, ?, ?)", rows)
        reach("sink.after_prepare")
        return True

    def commit(self, sender, name):
        reach("sink.before_commit")
        self._end(sender, name, is_commit=True)
        reach("sink.after_commit")

    def abort(self, sender, name):
        self._end(sender, name, is_commit=False)

    def _end(self, sender, name, *, is_commit):
        mine = "WHERE sender = ? AND name = ?"
        with self.database as database:
            if is_commit:
                text = f"INSERT INTO result (text) SELECT text FROM waiting {mine} ORDER BY number"
                database.execute(text, [sender, name])
                end = f"INSERT OR REPLACE INTO sender SELECT sender, end FROM prepared {mine}"
                database.execute(end, [sender, name])
            database.execute(f"DELETE FROM waiting {mine}", [sender, name])
            database.execute(f"DELETE FROM prepared {mine}", [sender, name])


if __name__ == "__main__":
    connector = experimental.TransactionalSinkConnector(required_params=["file"])
    connector.listen()
    connector.serve(Table(connector.params.file, connector.config.decoder.decode))
