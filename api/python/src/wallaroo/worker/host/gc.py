"""Makes Python's garbage collector look for cyclic references less often."""

import gc

# With Python's default and half a million states in a process, the collector took a sixth of the worker's time.
OBJECTS = 10_000
_default = gc.get_threshold()


def collect_less() -> None:
    """Run the collector only after `OBJECTS` new objects, and exclude all present objects from it forever.

    If the program has changed the number or switched the collector off, this setting is kept.
    """
    if gc.isenabled() and gc.get_threshold() == _default:
        gc.set_threshold(max(OBJECTS, _default[0]))
    gc.collect()
    gc.freeze()
