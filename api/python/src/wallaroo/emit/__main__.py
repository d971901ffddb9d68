"""`python -m wallaroo.emit APP [ARGS]`: writes the topology of a program."""

import sys

from wallaroo.emit.emit import leave, main

if __name__ == "__main__":
    leave(main(sys.argv[1:]))
