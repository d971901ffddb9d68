"""The protocol versions and capabilities on which worker and runtime agree before the first call."""

PROTOCOL_VERSION = 1
PROTOCOLS = (1, PROTOCOL_VERSION)  # the lowest and the highest version that this release speaks

WINDOWS, CROSSING, PROTOBUF = "windows", "crossing", "protobuf"
GENERATE, SPLIT_FRAMES = "generate", "split_frames"
IN_FLIGHT, CHECK_PERSIST, OUTPUTS, VISITS, RELEASE = "in_flight", "check_persist", "outputs", "visits", "release"
SHOW_STATE, TIMERS, SESSIONS, WATERMARKS = "show_state", "timers", "sessions", "watermarks"
# The optional features of a worker; SPECIFICATION.md, section 9, defines them.
CAPABILITIES = (
    WINDOWS, CROSSING, PROTOBUF, GENERATE, SPLIT_FRAMES, IN_FLIGHT, CHECK_PERSIST, OUTPUTS, VISITS, TIMERS, RELEASE,
    SHOW_STATE, SESSIONS, WATERMARKS,
)  # fmt: skip


def common_version(ours: tuple[int, int], theirs: tuple[int, int]) -> int:
    """Return the highest version that is in both ranges, or 0 if there is none.

    Example:
        >>> common_version((1, 3), (2, 5)), common_version((1, 3), (4, 5))
        (3, 0)
    """
    lowest, highest = max(ours[0], theirs[0], 1), min(ours[1], theirs[1])
    return highest if lowest <= highest else 0


def shown_versions(versions: tuple[int, int]) -> str:
    """Return a range of versions as text, for messages to people.

    Example:
        >>> shown_versions((1, 3)), shown_versions((2, 2))
        ('1 to 3', '2')
    """
    lowest, highest = versions
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"
