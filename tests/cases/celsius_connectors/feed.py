"""The connector `celsius`: sends each line of a file as a temperature."""

import struct

from wallaroo import experimental

connector = experimental.SourceConnector(required_params=["file"], optional_params=["host", "port"])
connector.connect(connector.params.host, connector.params.port)
with open(connector.params.file) as lines:
    for line in lines:
        connector.write(struct.pack(">f", float(line)))
connector.close()
