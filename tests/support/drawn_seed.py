"""Which drawn applications a run of the tests takes."""

SEED = 11


AFTER = ("range", "range")  # applications whose windows are after windows, with ticks while nobody sends
SESSIONS = ("session", "range")
TIMED = ("timed",)  # applications of which a state ends, or has timers
