"""`wallaroo completion bash|zsh|fish`: print the script by which a shell completes commands, options and values.

source <(wallaroo completion bash)            # in ~/.bashrc
source <(wallaroo completion zsh)             # in ~/.zshrc, after compinit
wallaroo completion fish > ~/.config/fish/completions/wallaroo.fish
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

BASH = """\
_wallaroo() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" at="" each words
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $each" in
{moves}
        esac
    done
    case "$at $before" in
{values}
        *) case "$at" in
{words}
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _wallaroo wallaroo"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


class Level(NamedTuple):
    """The command `wallaroo`, or one of its subcommands: a place of the command line where a shell completes words.

    Attributes:
        path: Words of the command line that lead to the command.
    """

    path: tuple[str, ...]
    parser: argparse.ArgumentParser
    commands: dict[str, argparse.ArgumentParser]


def add_parser(subparsers: Any) -> None:
    """Declare the command's arguments."""
    parser = subparsers.add_parser("completion", help="print a shell's completion", description=__doc__)
    parser.add_argument("shell", choices=sorted(SHELLS), help="which shell reads it")
    parser.add_argument("--json", action="store_true", help="write findings as a JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the completion script for a shell."""
    from wallaroo_runtime.cli.main import command_parser  # late import: that module imports this one

    parser, _ = command_parser()
    print(SHELLS[arguments.shell](list(levels(parser))))
    return 0


def levels(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Level]:
    """Yield a command and all its subcommands."""
    commands: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands.update(action.choices)
    yield Level(path, parser, commands)
    for name, child in commands.items():
        yield from levels(child, (*path, name))


def options(level: Level) -> list[argparse.Action]:
    """Return the options that a shell completes after a command."""
    return [action for action in level.parser._actions if action.option_strings]


def bash(levels: list[Level]) -> str:
    """Return the completion function for bash."""
    moves, values, words = [], [], []
    for level in levels:
        at = " ".join(level.path)
        moves += [f'            "{at} {name}") at="{f"{at} {name}".strip()}" ;;' for name in level.commands]
        names = [name for action in options(level) for name in action.option_strings]
        choices = [str(each) for action in _positions(level) for each in action.choices or ()]
        words.append(f'            "{at}") words="{" ".join([*level.commands, *choices, *names])}" ;;')
        for action in options(level):
            if action.nargs == 0:
                continue
            offered = " ".join(str(each) for each in action.choices or ())
            pattern = "|".join(f'"{at} {name}"' for name in action.option_strings)
            values.append(f'        {pattern}) words="{offered}" ;;')
    return BASH.format(moves="\n".join(moves), values="\n".join(values), words="\n".join(words))


def zsh(levels: list[Level]) -> str:
    """Return the function for bash in a form that zsh can also read."""
    return ZSH + bash(levels)


def fish(levels: list[Level]) -> str:
    """Return the completion commands for fish."""
    lines = []
    for level in levels:
        seen = [f"__fish_seen_subcommand_from {name}" for name in level.path]
        if level.commands:
            seen.append(f"not __fish_seen_subcommand_from {' '.join(level.commands)}")
        start = f"complete -c wallaroo{' -n ' + _quoted('; and '.join(seen)) if seen else ''}"
        helps = {action.dest: action.help for action in _helps(level)}
        lines += [f"{start} -f -a {name} -d {_quoted(helps.get(name) or '')}" for name in level.commands]
        lines += [f"{start} -a {_quoted(' '.join(map(str, each.choices or ())))}" for each in _positions(level)]
        lines += [f"{start}{_fish_option(level.parser, action)}" for action in options(level)]
    return "\n".join(lines)


def _fish_option(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    names = "".join(f" -l {each[2:]}" if each.startswith("--") else f" -s {each[1:]}" for each in action.option_strings)
    values = "" if action.nargs == 0 else " -r"
    if action.choices:
        values += f" -f -a {_quoted(' '.join(map(str, action.choices)))}"
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return f"{names}{values} -d {_quoted(text)}"


def _positions(level: Level) -> list[argparse.Action]:
    """Return the positional arguments of a command that have choices."""
    return [each for each in level.parser._actions if not each.option_strings and each.choices and not level.commands]


def _helps(level: Level) -> Iterator[argparse.Action]:
    for action in level.parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action._choices_actions


def _quoted(text: str) -> str:
    """Return a text as one word of fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SHELLS = {"bash": bash, "fish": fish, "zsh": zsh}
