"""`--conf NAME=VALUE`: settings of Spark and settings of Wallaroo. spark-submit passes both kinds on to the driver."""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.cli.parser import wrong_usage
from wallaroo_runtime.gateway.config import FSYNC_POLICIES
from wallaroo_runtime.monitor.access import TOKEN_FILE as MONITOR_TOKEN_FILE
from wallaroo_runtime.peer.limits import JOURNAL_FSYNC, Bounds
from wallaroo_runtime.service.credential import AUTHORITY, TOKEN_FILE
from wallaroo_runtime.worker.interpreter import SETTING as WORKER_PYTHON

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
MAX_BYTES = (1 << 63) - 1
MAX_PARTITIONS = 10_000
_SIZE = re.compile(r"([0-9]{1,19}) ?(|[KMGT]iB)")
_SECONDS = re.compile(r"(?=.*[1-9])[0-9]{1,9}(?:\.[0-9]{1,3})?")


class Setting(NamedTuple):
    """A setting of `--conf` that is checked before Spark starts.

    Attributes:
        is_value: Returns whether a text is a valid value.
        what: Noun for valid values, for the message that a text is invalid.
        fix: Remedy, which names valid values.
        help: Text for `wallaroo run --help`; empty if the setting is not listed there.
    """

    is_value: Callable[[str], bool]
    what: str
    fix: str
    help: str = ""


def size_of(text: str) -> int | None:
    """Return the number of bytes that a text such as 64MiB stands for; None for any other text.

    Example:
        >>> size_of("512"), size_of("64MiB"), size_of("lots"), shown(64 << 20)
        (512, 67108864, None, '64MiB')
    """
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * UNITS[match[2]] if match else MAX_BYTES + 1
    return size if size <= MAX_BYTES else None


def shown(size: int) -> str:
    """Return a number of bytes as a text that `size_of` can read, in the largest unit that gives a whole number."""
    unit = [name for name, factor in UNITS.items() if size % factor == 0][-1] if size else ""
    return f"{size // UNITS[unit]}{unit}"


def _size(what: str, default: int) -> Setting:
    is_size, fix = (lambda text: size_of(text) is not None), "give bytes, e.g. 1000000 or 64MiB"
    return Setting(is_size, "a number of bytes", fix, f"{what}; default: {shown(default)}")


_DEFAULT = Bounds()
FSYNC, JOURNAL, OUTBOX, CACHE = (
    f"spark.wallaroo.{name}" for name in ("journal.fsync", "journal.maxBytes", "outbox.maxBytes", "state.cacheBytes")
)
SETTINGS = {
    FSYNC: Setting(
        FSYNC_POLICIES.__contains__,
        "a time to make the journal safe",
        f"give one of {', '.join(FSYNC_POLICIES)}",
        f"{', '.join(FSYNC_POLICIES)}; default: {JOURNAL_FSYNC}, 50 ms, with --mode realtime batch",
    ),
    JOURNAL: _size("stop reading sources when so much waits to be processed", _DEFAULT.journal_bytes),
    OUTBOX: _size("pause when so much output waits for the sinks", _DEFAULT.max_outbox_bytes),
    CACHE: _size("state that each worker keeps in memory", _DEFAULT.state_cache_bytes),
    MONITOR_TOKEN_FILE: Setting(
        bool, "a file", "give its path", "file with the monitor's token, mode 600; default: each start makes one"
    ),
    WORKER_PYTHON: Setting(
        bool, "an interpreter", "give its path", "interpreter of Python workers; default: that of spark.pyspark.python"
    ),
    TOKEN_FILE: Setting(bool, "a file", "give its path", "file with the token of --gateway and --egress"),
    AUTHORITY: Setting(bool, "a file", "give its path", "certificates (PEM) that sign theirs; default: no TLS"),
    "spark.wallaroo.realtime.batchSeconds": Setting(
        lambda text: _SECONDS.fullmatch(text) is not None, "a time", "give seconds, more than 0, e.g. 60"
    ),
    "spark.sql.shuffle.partitions": Setting(
        lambda text: text.isdigit() and 0 < int(text) <= MAX_PARTITIONS,
        "a number of partitions",
        f"give 1 to {MAX_PARTITIONS}",
    ),
}
OWN = "spark.wallaroo."


def settings_help() -> str:
    """Return the lines of the help about Wallaroo's own settings."""
    listed = {name: each.help for name, each in SETTINGS.items() if each.help}
    width = max(map(len, listed))
    return "\n".join(["settings of --conf:", *(f"  {name:{width}}  {each}" for name, each in listed.items())])


def conf_of(texts: list[str]) -> dict[str, str]:
    """Return the settings that options `--conf` give.

    Raises:
        RunError: R608 if a setting is not correct.

    Example:
        >>> conf_of(["spark.executor.cores=2", "spark.executor.extraJavaOptions=-Da=b"])
        {'spark.executor.cores': '2', 'spark.executor.extraJavaOptions': '-Da=b'}
    """
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            reason = f"--conf {text} is no setting of Spark"
            raise wrong_usage(reason=reason, fix="give NAME=VALUE, e.g. spark.executor.cores=2")
        known = SETTINGS.get(name)
        if known is None and name.startswith(OWN):
            close = closest(name, SETTINGS)
            names = ", ".join(each for each in SETTINGS if each.startswith(OWN))
            fix = f"did you mean {close}?" if close else f"there are {names}"
            raise wrong_usage(reason=f"--conf {text}: there is no setting {name}", fix=fix)
        if known is not None and not known.is_value(value):
            raise wrong_usage(reason=f"--conf {text} is not {known.what}", fix=known.fix)
        settings[name] = value
    return settings


def bounds_of(conf: Mapping[str, str]) -> Bounds:
    """Return the bounds of journal, outbox and memory of a run, from settings that `conf_of` has checked."""

    def size(name: str, default: int) -> int:
        size = size_of(conf.get(name, ""))
        return default if size is None else size

    return Bounds(
        journal_fsync=conf.get(FSYNC, _DEFAULT.journal_fsync),
        journal_bytes=size(JOURNAL, _DEFAULT.journal_bytes),
        max_outbox_bytes=size(OUTBOX, _DEFAULT.max_outbox_bytes),
        state_cache_bytes=size(CACHE, _DEFAULT.state_cache_bytes),
    )
