"""`wallaroo completion bash|zsh|fish`: print the script by which a shell completes commands, options and values.

source <(wallaroo completion bash)            # in ~/.bashrc
source <(wallaroo completion zsh)             # in ~/.zshrc, after compinit
wallaroo completion fish > ~/.config/fish/completions/wallaroo.fish
"""

import argparse
from collections.abc import Iterator
from typing import Any

SHELLS = ("bash", "fish", "zsh")


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("completion", help="print a shell's completion", description=__doc__)
    parser.add_argument("shell", choices=SHELLS, help="which shell reads it")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the completion script for a shell."""
    import shtab  # late, since only this command needs it

    from wallaroo_runtime.cli.main import command_parser  # late import: that module imports this one

    parser, _ = command_parser()
    for action in actions_of(parser):
        if isinstance(action, argparse._SubParsersAction):
            action.help = None  # shtab would leave out commands without help
        elif action.nargs != 0 and not action.choices:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, arguments.shell))
    return 0


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options and positional arguments of a command and of all its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from actions_of(child)
