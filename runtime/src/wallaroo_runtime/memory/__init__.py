"""Runs an application in this process without Spark, with the same stages and frames as on Spark."""

from wallaroo_runtime.memory.engine import BatchResult, Engine
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.start import start

__all__ = ["BatchResult", "Engine", "MemoryRun", "start"]
