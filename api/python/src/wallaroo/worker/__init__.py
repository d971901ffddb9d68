"""The worker of Python programs: a process that runs user code when the runtime calls it."""
