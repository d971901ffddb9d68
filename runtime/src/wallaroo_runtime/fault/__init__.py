"""Places at which tests let a process die, in the code that production runs."""

from wallaroo_runtime.fault.point import reach

__all__ = ["reach"]
