"""Serves the tables of both groups.

http://127.0.0.1:9096/USER has the clicks of a user, http://127.0.0.1:9097/USER the status.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from wallaroo import goka

BROKERS = ["127.0.0.1:9092"]


def serve(group, codec, port):
    """Serve the table of a group over HTTP: each answer has the value of a user."""
    with goka.View(BROKERS, goka.group_table(group), codec) as view:
        view.wait_running()

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"{view.get(self.path.removeprefix('/'))}\n".encode())

        ThreadingHTTPServer(("127.0.0.1", port), Answer).serve_forever()


if __name__ == "__main__":
    threading.Thread(target=serve, args=("click-count", goka.Int64(), 9096), daemon=True).start()
    serve("user-status", goka.String(), 9097)
