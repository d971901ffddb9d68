"""Draws latency over time as SVG: half and nearly all messages of each tenth of a second, on a logarithmic axis."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 320, 60, 20, 40, 40
SLOT_S = 0.1
LOW_MS, HIGH_MS = 1.0, 1000.0
TEXT = 'font-family="sans-serif" font-size="12"'


def chart(results: Sequence[tuple[float, float]], title: str) -> str:
    """Return a picture.

    Args:
        results: For each message a moment and its latency, in seconds.
        title: What it shows.
    """
    begin = min(moment for moment, _ in results)
    slots: dict[int, list[float]] = defaultdict(list)
    for moment, latency in results:
        slots[int((moment - begin) / SLOT_S)].append(1000 * latency)
    last = max(slots) + 1
    top = max(HIGH_MS, max(map(max, slots.values())))

    def across(slot: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * slot / last

    def down(milliseconds: float) -> float:
        share = _decades(max(milliseconds, LOW_MS)) / _decades(top)
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" {TEXT}>{title}: milliseconds in each {SLOT_S} s; grey: most, blue: median</text>',
        *_axes(across, down, last, top),
    ]
    for slot, values in sorted(slots.items()):
        values.sort()
        x, highest, median = across(slot + 0.5), down(values[-1]), down(values[len(values) // 2])
        parts.append(f'<path d="M{x:.1f} {down(values[0]):.1f}V{highest:.1f}" stroke="#999" stroke-width="1"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{median:.1f}" r="1.2" fill="#06c"/>')
    return "\n".join([*parts, "</svg>", ""])


def _axes(across: Callable[[float], float], down: Callable[[float], float], last: int, top: float) -> list[str]:
    parts, value = [], LOW_MS
    while value <= top:
        y = down(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" {TEXT}>{value:g}</text>')
        value *= 10
    for second in range(0, int(last * SLOT_S) + 1, 10):
        x = across(second / SLOT_S)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 15}" text-anchor="middle" {TEXT}>{second} s</text>')
    return parts


def _decades(milliseconds: float) -> float:
    return math.log10(milliseconds / LOW_MS)
