"""Makes the archive of Java's classes for the tests, if there is none: `make test` begins with it.

Otherwise the first runs of the tests start without one, which takes three times their processor time.
"""

import tempfile
from pathlib import Path

from support.host import java_of
from support.run import CASES, Receiver, Run, framed, wait_until
from wallaroo_runtime.spark.machine.settings import start_settings
from wallaroo_runtime.system.class_archive import is_being_made

WRITING_S = 300.0
OPTIONS = "spark.driver.extraJavaOptions"


def is_missing(folder: Path) -> bool:
    """Say whether a run would make the archive."""
    options = start_settings("local[2]", folder, {}, makes_archive=True)[OPTIONS]
    return any(is_being_made(option.strip('"')) for option in options.split())


def main() -> None:
    """Count some words, so that Java has loaded what a query needs; then Java writes the file and ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not is_missing(folder):
            return
        print("making an archive of Java's classes: once for each build of the jar")
        with Receiver() as receiver, Run(CASES / "word_count" / "app.py", receiver, folder / "checkpoint") as run:
            run.ready().send(framed([b"a b c"] * 10))
            receiver.wait_for_lines(30, run)
            java = Path("/proc", str(java_of(run.process.pid)))
            assert run.stop() == 0, run.said()
        wait_until(lambda: not java.exists(), lambda: "the end of Java", WRITING_S, every=0.5)


if __name__ == "__main__":
    main()
