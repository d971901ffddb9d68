"""Makes the class archive of Spark's Java before the tests, unless it is there.

Each start of Spark with it takes 9 seconds of processor time, without it 24. The first run that ends writes it, for as
long as a start takes; among tests that share two processors, half of the starts would come before it is there.
"""

import tempfile
from pathlib import Path

from support.case import Case
from support.run import wait_until
from support.shown_case import show
from wallaroo_runtime.spark.machine.settings import start_settings

ARCHIVE = "-XX:SharedArchiveFile="
WRITING_S = 120.0


def is_there(folder: Path) -> bool:
    """Return whether a run on this machine would start with an archive."""
    return ARCHIVE in start_settings("local[2]", folder, {})["spark.driver.extraJavaOptions"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not is_there(folder):
            show(Case("alphabet"), "python", folder / "checkpoint")
            wait_until(lambda: is_there(folder), lambda: "the class archive", WRITING_S, every=0.2)
