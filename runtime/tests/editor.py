"""An editor: speaks the debug adapter protocol with what a launch configuration names."""

import json
import socket
from collections.abc import Mapping
from typing import Any

WAIT_S = 300.0


class Editor:
    """Attaches where a launch configuration says.

    Args:
        configuration: Of `launch.json`; it attaches to a host and port.
    """

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        place = configuration["connect"]
        self._stream = socket.create_connection((place["host"], place["port"]), WAIT_S)
        self._file = self._stream.makefile("rwb")
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self.ask("initialize", adapterID=configuration["type"], linesStartAt1=True)
        self._attach = self._send("attach", dict(configuration))

    def stop_at(self, path: str, line: int) -> None:
        """Set a breakpoint, and let the program go on to it."""
        self.event("initialized")
        self.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": line}])
        self.ask("configurationDone")
        self._answer(self._attach)

    def value(self, text: str) -> str:
        """Wait until the program has stopped; return what an expression is there."""
        thread = self.event("stopped")["threadId"]
        frame = self.ask("stackTrace", threadId=thread)["stackFrames"][0]["id"]
        found = self.ask("evaluate", expression=text, frameId=frame)["result"]
        self.ask("continue", threadId=thread)
        return str(found)

    def leave(self) -> None:
        """Let the program run without a debugger."""
        self.ask("disconnect", terminateDebuggee=False)
        self._stream.close()

    def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Return the answer to a request."""
        return self._answer(self._send(command, arguments))

    def event(self, name: str) -> dict[str, Any]:
        """Wait for an event, and return what it says."""
        while True:
            for found in self._events:
                if found["event"] == name:
                    self._events.remove(found)
                    return dict(found.get("body", {}))
            self._read()

    def _send(self, command: str, arguments: Mapping[str, object]) -> int:
        self._number += 1
        request = {"seq": self._number, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(request).encode()
        self._file.write(b"Content-Length: %d\r\n\r\n%b" % (len(content), content))
        self._file.flush()
        return self._number

    def _answer(self, number: int) -> dict[str, Any]:
        while True:
            found = self._read()
            if found.get("request_seq") == number:
                assert found["success"], found
                return dict(found.get("body") or {})

    def _read(self) -> dict[str, Any]:
        size = 0
        while line := self._file.readline().strip():
            name, _, value = line.partition(b":")
            size = int(value) if name == b"Content-Length" else size
        found: dict[str, Any] = json.loads(self._file.read(size))
        if found["type"] == "event":
            self._events.append(found)
        return found
