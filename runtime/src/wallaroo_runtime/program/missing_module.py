"""Prints the names of modules that the interpreter does not find. Any Python 3 can run this file as a script."""

import sys


def main() -> None:
    """Print which of the modules in `sys.argv` are missing. As in a worker, this file's directory is not searched."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    from importlib.util import find_spec

    print(*(name for name in sys.argv[1:] if not find_spec(name)))


if __name__ == "__main__":
    main()
