"""How often Python looks for garbage that refers to itself."""

import gc

# With Python's own number, and half a million states in a process, the collector took a sixth of the worker's time.
OBJECTS = 10_000
_default = gc.get_threshold()


def collect_less() -> None:
    """Let the collector come after `OBJECTS` new objects, and leave out for ever all that was imported and set up.

    A program that has chosen its own number, or switched the collector off, keeps that.
    """
    if gc.isenabled() and gc.get_threshold() == _default:
        gc.set_threshold(max(OBJECTS, _default[0]))
    gc.collect()
    gc.freeze()
