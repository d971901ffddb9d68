"""The rules of SPECIFICATION.md that a worker must keep, the checks of each, and the faults that break it.

Every check belongs to a rule, and every rule has a fault that one of its checks notices; `tests/test_conformance.py`
proves both.
"""

from fnmatch import fnmatchcase
from typing import NamedTuple


class Rule(NamedTuple):
    """A rule.

    Attributes:
        section: Of SPECIFICATION.md.
        says: What it asks for.
        checks: Names of checks; `*` stands for any text.
        faults: What breaks it: names of `fault.py` and `behaviour.py`, or, of rules about processes, of
            `wrong_worker.py`.
        needs_process: Whether the checks look at processes, so that the faults need some, too.
    """

    section: int
    says: str
    checks: tuple[str, ...]
    faults: tuple[str, ...]
    needs_process: bool = False

    def has(self, check: str) -> bool:
        """Say whether a check is one of this rule's."""
        return any(fnmatchcase(check, pattern) for pattern in self.checks)


def of_processes(section: int, says: str, checks: tuple[str, ...], *faults: str) -> Rule:
    """Return a rule about processes."""
    return Rule(section, says, checks, faults, needs_process=True)


def of_calls(section: int, says: str, checks: tuple[str, ...], *faults: str) -> Rule:
    """Return a rule about calls."""
    return Rule(section, says, checks, faults)


RULES = (
    of_processes(3, "mode emit writes the topology", ("emit: the topology*",), "emits-another-name"),
    of_processes(
        3, "a setup that fails is told in the emit file, with status 0", ("emit: a setup*",), "silent-setup"),
    of_processes(
        3, "a setup that fails leaves failure.json and status 3", ("worker: a setup*",), "silent-setup"),
    of_processes(3, "a program that is started by hand says W412, with status 2", ("by hand*",), "friendly-by-hand"),
    of_processes(3, "every endpoint serves the health service", ("health*",), "unhealthy"),
    of_calls(3, "Init reports versions, language and hash", ("init: versions*",), "no-language"),
    of_calls(3, "Init refuses another protocol version", ("init: a range of versions*", "init: a wider*"),
             "accepts-any-version"),
    of_calls(
        3, "Init refuses another interface hash where one is given", ("init: another interface*", "init: no hash*"),
        "accepts-any-hash"),
    of_calls(3, "every endpoint answers Init", ("init: every endpoint*",), "endpoints-differ"),
    of_calls(
        3, "a language without threads has a process for each endpoint", ("endpoints:*", "process: several streams*"),
        "one-process"),
    of_processes(3, "SIGTERM ends the worker within 5 s", ("end: SIGTERM*",), "ignores-sigterm"),
    of_processes(
        3, "a worker ends its child processes, however it ends", ("end: SIGKILL*", "end: a worker that was killed*"),
        "leaves-orphan"),
    of_calls(
        1, "keys are bytes, integers 8 of them, and have a bucket",
        ("process: keys, buckets*", "process: many keys*", "process: integer keys*"), "wrong-bucket",
        "little-endian-keys"),
    of_calls(
        4, "outputs have the sequence of their source message, each once",
        ("process: keys, buckets*", "process: values that are not*", "process: a source that goes*"),
        "later-sequence", "says-twice"),
    of_calls(
        4, "messages of a bucket call run in the order of their sequences", ("state: frames that overlap*",),
        "runs-as-framed"),
    of_calls(
        4, "no message is lost", ("process: messages of one key*", "process: many keys*", "process: a printing step*",
        "process: a message of 5 MiB"), "loses-messages"),
    of_calls(
        4, "done comes after the outputs, data by data",
        ("process: many data*", "process: empty data*", "process: several frames*"), "done-first"),
    of_calls(4, "an output frame is closed near frame_bytes", ("process: output frames*",), "one-frame"),
    of_calls(
        4, "done counts messages per node", ("process: counts*", "branch: counts*"), "wrong-counts"),
    of_calls(4, "None goes no further", ("process: None*", "state: an output of None*"), "none-goes-on"),
    of_calls(
        4, "a message that user code fails on is a dead letter with code, path, sequence, input, time and one line",
        ("dead letters: *", "encoder:*"), "no-dead-letters", "one-code", "letters-without-input",
        "letters-without-time", "letters-of-two-lines"),
    of_calls(
        4, "a dead letter of a state step has its key", ("state: a failing message leaves*",), "letters-without-key"),
    of_calls(
        4, "a message goes to its readers in the order of the nodes, depth first", ("branch: a message*",),
        "reversed-branches", "branches-in-document-order"),
    of_calls(
        4, "messages for a named output go to that, those of a failing call nowhere", ("output:*",),
        "swapped-outputs", "outputs-are-results", "undeclared-outputs-are-dropped"),
    of_calls(1, "key_by gives the key", ("key_by:*",), "no-key-by"),
    of_calls(
        4, "the outputs of a part leave at once, and once; all else comes when the call ends",
        ("release: *gives what*", "release: the outputs*", "release: a part of*", "release: user code*",
         "release: after*", "release: skips*", "release: in flight*", "release: visits*", "release: windows*",
         "release: a state*", "release: a snapshot*", "release: a call that*", "release: parts that*",
         "release: messages of*"),
        "releases-nothing", "releases-twice", "counts-last-part", "repeats-from-the-log", "step-by-step"),
    of_processes(
        4, "a call that a worker has not ended is made again", ("release: the worker ends*",), "ignores-careful"),
    of_calls(1, "collect gives the empty key", ("collect:*", "state: a single state*"), "no-collect"),
    of_calls(
        4, "a KEY takes the message's key, that of its partition, or the empty one", ("key: *",), "keyless-border",
        "timeless-border"),
    of_calls(
        4, "keys, times and sequences pass a border, and a state step",
        ("send: messages keep*", "send: without keys*", "state: the key goes on*"), "keyless-border",
        "timeless-border"),
    of_calls(
        4, "messages cross in a codec or in the worker's own form",
        ("send: without a codec*", "send: a message of another type*", "send: user code*", "state: messages in*"),
        "loses-messages", "ignores-codecs"),
    of_calls(
        5, "reading a codec is strict", ("codec *: other bytes*", "state: a value that is not in the codec*"),
        "lax-codec", "lax-text"),
    of_calls(
        5, "a codec's bytes are the same in all languages", ("codec *: values*", "send: numbers*"),
        "json-exponents", "json-unsorted"),
    of_calls(
        4, "the copy of exactly the version is used, and no other",
        ("state: the copy*", "state: another nonce*", "state: the same counter*", "state: version (0, 0)*",
         "state: a call without*", "state: buckets do not*"), "no-cache", "stale-copy", "reused-nonce"),
    of_calls(
        4, "version (0, 0) is never asked for", ("state: the first call*", "state: a failing message of a new*"),
        "asks-always"),
    of_calls(
        4, "state is rebuilt from its log, where later entries win",
        ("state: a worker that knows*", "state: after a failure*"), "first-entry-wins", "loses-changes"),
    of_calls(4, "an absent entry is no state", ("state: an absent*",), "absent-is-a-state"),
    of_calls(
        4, "changes are the persisted keys' or, where wanted, all of them, with the state's port",
        ("state: a delta*", "state: many keys*", "state: a snapshot of*"), "always-snapshot", "never-snapshot",
        "other-state-port"),
    of_calls(
        4, "a copy whose call did not end is dropped", ("state: a call that did not*", "state: several requests*"),
        "loses-messages"),
    of_calls(
        4, "a failing message leaves the state as before it, after a rollback", ("state: a failing message leaves*",
        "state: a result of the wrong type*"), "unmarked-rollback", "state-is-not-put-back"),
    of_calls(4, "a key that a closed list does not have is C502", ("closed list*",), "open-list"),
    of_calls(
        4, "a state stage that routes on", ("state: a stage that routes*", "state: a message of 5 MiB"),
        "loses-messages", "wrong-bucket"),
    of_calls(
        4, "a state that cannot be written is C504 of its message", ("state: one that cannot be written*",),
        "unwritable-state-ends-the-call", "one-code"),
    of_calls(
        4, "C511 names the key where no single message is at fault", ("state: one that no single*",),
        "failures-without-key", "another-code-for-c511", "failures-to-repeat"),
    of_calls(
        4, "C507 names the key of a state that cannot be read, which is no new one", ("state: one of the log*",),
        "unreadable-state-is-new", "failures-without-key", "another-code-for-c507"),
    of_calls(
        4, "a change that is not persisted is none",
        ("state: what is not persisted*", "state: a change that was not persisted*"), "persists-all"),
    of_calls(4, "WALLAROO_CHECK_PERSIST=1 finds changes that are not persisted", ("check persist: with the*",),
             "ignores-check-persist"),
    of_calls(4, "without WALLAROO_CHECK_PERSIST nothing is looked at", ("check persist: without*",),
             "always-checks-persist"),
    of_calls(3, "the cache keeps its bound", ("cache:*",), "unbounded-cache"),
    of_calls(4, "a careful call reads its state from the log", ("careful: the state*",), "ignores-careful"),
    of_processes(
        4, "in a careful call a message is in flight while its state is written", ("careful: a message*",),
        "ignores-careful"),
    of_calls(4, "with alone no other call of the process runs a message", ("alone:*",), "ignores-alone"),
    of_calls(4, "the in-flight file is written, and refused where it cannot be mapped",
             ("in flight: the file reports*", "in flight: a file that*"), "blind"),
    of_processes(
        4, "the in-flight file names the message that ended the worker", ("in flight: the file names*",), "blind"),
    of_processes(
        4, "ended.json names the process that ended", ("in flight: a worker whose*",), "no-ended-json"),
    of_calls(4, "skipped messages are dead letters of their source", ("skips: *source",), "ignores-skips"),
    of_calls(
        4, "skipped messages leave states and windows alone",
        ("skips: *state alone", "window: a skipped*", "timer: a skipped*"), "ignores-skips-of-state"),
    of_calls(
        2, "a damaged frame is W410", ("damage: each kind*", "damage: what came*"), "swallows-failures",
        "internal-failures"),
    of_calls(
        2, "a frame without messages is passed over", ("frames: one without*", "send: a frame without*"),
        "refuses-empty-frames"),
    of_calls(2, "framed bytes for no message are W410", ("frames: bytes for no*",), "internal-failures"),
    of_calls(
        4, "a state above 4 MiB is in its log in pieces", ("pieces: a state above*", "pieces: they are read*"),
        "whole-states", "pieces-are-states"),
    of_calls(4, "pieces that do not follow each other are W410", ("pieces: one that*",), "pieces-are-states"),
    of_calls(2, "a damaged log is W410, not an empty state", ("damage: a damaged log*",), "damaged-log-is-empty"),
    of_calls(4, "a stage of another program is W403", ("stage: *",), "internal-failures"),
    of_calls(4, "SplitFrames gives the lengths of whole messages", ("SplitFrames*",), "wrong-cut"),
    of_calls(
        4, "Generate makes messages from the last one, as many as are asked for", ("generate: *",), "no-generate",
        "generates-from-the-beginning", "generates-all", "generates-for-ever", "generates-nothing-before-a-failure"),
    of_calls(
        4, "ShowState has a JSON text for each key that has state at the end of a log", ("show state: *",),
        "shows-nothing", "shows-text", "first-entry-wins"),
    of_calls(8, "windows emit what the vectors say", ("window: *",), "no-window", "no-ticks", "timeless-border"),
    of_calls(8, "sessions emit what the vectors say", ("session: *",), "no-window", "no-ticks", "timeless-border"),
    of_calls(
        8, "states end and timers run as the vectors say", ("timer: *",), "no-ticks", "states-stay", "arrival-counts",
        "no-timers", "uncounted-timers"),
    of_calls(
        4, "a visit runs once for each key with state, at its place", ("visit: *",), "no-visits", "visits-twice",
        "visits-in-another-order", "visits-without-metadata", "uncounted-visits"),
    of_processes(6, "a kill point kills once", ("fault: *",), "no-kill-points"),
)  # fmt: skip
