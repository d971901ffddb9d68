"""A stand-in of a schema registry: what Confluent's clients, and jobs, ask one for."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def schema_registry() -> Iterator[str]:
    """Serve one on a free port of this machine; gives its URL."""
    schemas, subjects = list[str](), dict[str, list[int]]()

    def registered(subject: str, schema: str) -> dict[str, object]:
        if schema not in schemas:
            schemas.append(schema)
        number = schemas.index(schema) + 1
        versions = subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return {"subject": subject, "id": number, "version": versions.index(number) + 1, "schema": schema}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - the library's name
            _, _, subject, *_ = self.path.split("?")[0].split("/")
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(registered(subject, body["schema"]))

        def do_GET(self) -> None:  # noqa: N802 - the library's name
            _, kind, name, number, *_ = self.path.split("?")[0].split("/")
            if kind == "subjects":  # /subjects/NAME/versions/latest
                self._answer(registered(name, schemas[subjects[name][-1] - 1]))
            elif kind == "schemas":  # /schemas/ids/NUMBER
                self._answer({"schema": schemas[int(number) - 1]})
            else:  # which only newer ones know
                self._answer({"error_code": 404, "message": "unknown"}, 404)

        def _answer(self, body: dict[str, object], status: int = 200) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
