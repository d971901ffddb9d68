"""`python -m wallaroo.emit APP [ARGS]`: writes the topology of a program."""

import os
import sys

from wallaroo.emit.emit import main

if __name__ == "__main__":
    status = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Python's usual exit would wait for threads that the program may have started.
    os._exit(status)
