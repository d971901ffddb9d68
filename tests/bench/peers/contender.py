"""The contenders: how each is installed and started, and what it guarantees.

Left out: PyFlink, Beam and Faust; docs/comparison.md has the reasons.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.goka import build_ours, build_own
from support.run import TESTS, WALLAROO
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.source.kafka_connector import connector_jars
from wallaroo_runtime.system.java import java_program
from wallaroo_runtime.system.maven import fetched_jars

PROGRAM = Path(__file__).resolve().parent / "program"
HOME = TESTS.parent / "build" / "peers"
INSTALL_S, INSTALLED = 1800, "installed"
KAFKA = "4.1.1"
STREAMS = (
    f"org.apache.kafka:kafka-streams:{KAFKA}",
    "com.fasterxml.jackson.core:jackson-databind:2.19.0",
    "org.slf4j:slf4j-simple:1.7.36",
)
EXACTLY_ONCE, STATE_ONCE, AT_LEAST_ONCE = "exactly once", "state exactly once, output at least once", "at least once"

Command = Callable[[Path, Mapping[str, str]], Sequence[str | Path]]


@dataclass(frozen=True)
class Contender:
    """A stream processor with its program.

    Attributes:
        title: In tables.
        guarantee: What it promises for its output when it is killed.
        home: The folder of what is installed for it, in that of all.
        install: Installs it there; raises where that fails.
        command: What starts it, by that folder and the variables of the run.
        environment: More variables.
    """

    title: str
    guarantee: str
    home: str
    install: Callable[[Path], object]
    command: Command
    environment: Mapping[str, str] = field(default_factory=dict)


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise OSError("; ".join(lines[-3:]) or f"{command[0]}: exit code {done.returncode}")


def _venv(*packages: str) -> Callable[[Path], object]:
    def install(folder: Path) -> None:
        _run(sys.executable, "-m", "venv", folder)
        _run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)

    return install


def _streams(folder: Path) -> None:
    jars = fetched_jars(f"kafka-streams-{KAFKA}", STREAMS)
    (folder / "jars").symlink_to(jars)
    _run("javac", "-d", folder / "classes", "-cp", f"{jars}/*", PROGRAM / "Streams.java")


def _in_python(program: str) -> Command:
    return lambda folder, _: [folder / "bin" / "python", PROGRAM / program]


def _in_java(folder: Path, _: Mapping[str, str]) -> list[str | Path]:
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [java_program() or "java", "-Xmx1g", logging, "-cp", f"{folder}/classes:{folder}/jars/*", "Streams"]


def _flow(folder: Path, variables: Mapping[str, str]) -> list[str | Path]:
    """Return the command of Bytewax, whose directory for recovery is to be made before."""
    python, state = folder / "bin" / "python", Path(variables["STATE"])
    if not state.exists():
        state.mkdir()
        _run(python, "-m", "bytewax.recovery", state, "1")
    seconds = "1" if int(variables["COMMIT_MS"]) >= 1000 else "10"  # a snapshot holds up what comes meanwhile
    return [python, "-m", "bytewax.run", PROGRAM / "bytewax_flow.py", "-r", state, "-s", seconds, "-b", "0"]


def _ours(*options: str, program: Path | None = None) -> Command:
    def command(folder: Path, variables: Mapping[str, str]) -> list[str | Path]:
        state = ("--checkpoint", variables["STATE"])
        return [WALLAROO, "run", program or folder / "ours", *state, "--monitor", "off", "--quiet", *options]

    return command


def _by_hand(_: Path, __: Mapping[str, str]) -> list[str | Path]:
    return [sys.executable, PROGRAM / "spark.py", ",".join(connector_jars())]


def _between_dataframes(program: Path | None = None) -> Command:
    job = PROGRAM / "dataframe.py"
    return lambda folder, _: [sys.executable, job, program or folder / "ours", ",".join(connector_jars())]


def _nothing(_: Path) -> None:
    """All that is needed is in the environment of this project."""


def _binary(folder: Path, _: Mapping[str, str]) -> list[str | Path]:
    return [folder / "goka"]


def _go(build: Callable[[Path, Path], Path], program: str) -> Callable[[Path], object]:
    return lambda folder: build(folder, PROGRAM / program)


REALTIME = ("--mode", "realtime")
FAST, LOOSE = {"MODE": "realtime"}, {"EXACTLY_ONCE": "0"}
OFTEN = {"COMMIT_MS": "20"}  # as often as this system; measured with `w2` alone
PYTHON = PROGRAM / "ours.py"
OURS_GO = _go(build_ours, "ours")
QUIX = _venv("quixstreams==3.28.1")
BASE = "kafka-streams"  # ratios are to it
CONTENDERS = {
    "ours-go": Contender("ours, Go, micro-batch", EXACTLY_ONCE, "ours-go", OURS_GO, _ours()),
    "ours-go-realtime": Contender("ours, Go, real-time", EXACTLY_ONCE, "ours-go", OURS_GO, _ours(*REALTIME), FAST),
    "ours-go-loose": Contender(
        "ours, Go, real-time, no transactions", STATE_ONCE, "ours-go", OURS_GO, _ours(*REALTIME), FAST | LOOSE
    ),
    "ours-python": Contender("ours, Python, micro-batch", EXACTLY_ONCE, "ours-python", _nothing, _ours(program=PYTHON)),
    "ours-python-realtime": Contender(
        "ours, Python, real-time", EXACTLY_ONCE, "ours-python", _nothing, _ours(*REALTIME, program=PYTHON), FAST
    ),
    "ours-python-loose": Contender(
        "ours, Python, real-time, no transactions",
        STATE_ONCE,
        "ours-python",
        _nothing,
        _ours(*REALTIME, program=PYTHON),
        FAST | LOOSE,
    ),  # fmt: skip
    BASE: Contender("Kafka Streams (Java)", EXACTLY_ONCE, BASE, _streams, _in_java),
    "quix": Contender("Quix Streams", EXACTLY_ONCE, "quix", QUIX, _in_python("quix.py")),
    "kafka-streams-20": Contender("Kafka Streams, commits each 20 ms", EXACTLY_ONCE, BASE, _streams, _in_java, OFTEN),
    "quix-20": Contender("Quix Streams, commits each 20 ms", EXACTLY_ONCE, "quix", QUIX, _in_python("quix.py"), OFTEN),
    "bytewax": Contender("Bytewax", STATE_ONCE, "bytewax", _venv("bytewax[kafka]==0.21.1"), _flow),
    "goka": Contender("Goka", AT_LEAST_ONCE, "goka", _go(build_own, "goka"), _binary),
    "dataframe-go": Contender("steps in PySpark, Go", STATE_ONCE, "ours-go", OURS_GO, _between_dataframes()),
    "dataframe-python": Contender(
        "steps in PySpark, Python", STATE_ONCE, "ours-python", _nothing, _between_dataframes(PYTHON)
    ),
    "pyspark": Contender("PySpark by hand", STATE_ONCE, "pyspark", _nothing, _by_hand),
}


def install(name: str) -> str:
    """Install a contender unless it is there; returns why that failed, or an empty text."""
    contender = CONTENDERS[name]
    folder = HOME / contender.home
    if (folder / INSTALLED).exists():
        return ""
    shutil.rmtree(folder, ignore_errors=True)  # an installation that did not come to its end
    folder.mkdir(parents=True)
    try:
        contender.install(folder)
    except (OSError, RunError, AssertionError, subprocess.SubprocessError) as error:
        return " ".join(str(error).split())[-300:] or type(error).__name__
    (folder / INSTALLED).touch()
    return ""
