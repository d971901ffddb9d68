"""Starts a module as `python -m` does, but never imports from the current directory: its files may be another user's.

`python -P` does so from Python 3.11 on; its variable would change the processes that programs start.
"""

import sys


def module_command(python: str, *arguments: str) -> list[str]:
    """Return the command by which an interpreter runs a module; the first of `arguments` names it."""
    return [python, __file__, *arguments]


def main() -> None:
    """Run the module that the arguments name."""
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the directory of this file; nothing has been imported that is not in the interpreter itself
    import runpy

    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
