"""What all suites share, whichever of their files is run."""

import gc
import os

import hypothesis

from support.signals import usual_signals
from wallaroo_runtime.system.java import QUICK_JAVA

usual_signals()
# As in `wallaroo`, before gRPC is imported: its fork handlers abort or hang in processes that tests start.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Of PySpark jobs that tests start, and of the small Java before each Spark, which computes its command: a short process
# loses more to Java's optimizing compiler than it gains.
os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_JAVA)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK_JAVA)
# What one example takes says nothing on a machine that does much else. Each run draws other examples, and
# `make test-long` many.
hypothesis.settings.register_profile("tests", deadline=None, max_examples=25)
hypothesis.settings.register_profile("long", deadline=None, max_examples=500)
hypothesis.settings.load_profile("tests")

# Collection makes six thousand tests, all of which stay: Python's collector would look through them again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Let Python's collector do its work, on objects of tests alone."""
    gc.freeze()
    gc.enable()
