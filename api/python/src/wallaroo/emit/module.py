"""Starts a module as `python -m` does. Imports nothing from the current directory, to which others may write.

`python -P` does the same since Python 3.11. Its environment variable would also affect processes that programs start.
"""

import sys


def module_command(python: str, *arguments: str) -> list[str]:
    """Return the command with which an interpreter runs a module. The first of `arguments` is the module's name."""
    return [python, __file__, *arguments]


def main() -> None:
    """Run the module that the arguments name."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # remove the directory of this file, before modules are imported from there
    import runpy

    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
