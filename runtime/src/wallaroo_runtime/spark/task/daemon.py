"""PySpark's daemon, with what our tasks import already in memory: each worker process is a fork of it.

Spark runs it as `python -m wallaroo_runtime.spark.task.daemon MODULE` (setting `spark.python.daemon.module`). PySpark's
own daemon imports nothing before it forks, since a library might start threads; none of the ones below does.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from wallaroo_runtime.spark.task.without_pandas import without_pandas

TASK_MODULE = "pyspark.worker"
NAME = "wallaroo-tasks"  # of the daemon and its forks, as `top` shows them: their command line may be a server's


def forget_archives() -> None:
    """Take the copy of PySpark that is installed instead of the archive that Spark puts before it.

    They are the same, but Python compiles the sources of an archive again in each process.
    """
    installed = [path for path in sys.path if not path.endswith(".zip")]
    if any(Path(path, "pyspark", "version.py").exists() and Path(path, "py4j").exists() for path in installed):
        sys.path[:] = installed


def preload(more: Iterable[str] = ()) -> None:
    """Import what tasks need.

    Args:
        more: Other modules.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else numpy starts threads
    import pyarrow
    import pyspark.sql.pandas.serializers  # noqa: F401
    import pyspark.sql.streaming.proto.StateMessage_pb2  # noqa: F401
    import pyspark.worker  # noqa: F401

    import wallaroo_runtime.spark.task.stage
    import wallaroo_runtime.spark.task.state  # noqa: F401

    for module in more:
        import_module(module)
    with without_pandas():
        pyarrow.array([0])
    # A worker process collects garbage after each task; that shall not visit, nor copy, what all of them share.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Become PySpark's daemon."""
    forget_archives()
    if sys.argv[1:] == [TASK_MODULE]:
        preload()
        with contextlib.suppress(OSError):  # a system without /proc
            Path("/proc/self/comm").write_text(NAME, encoding="ascii")
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
