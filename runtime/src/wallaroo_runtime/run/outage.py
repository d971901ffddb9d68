"""Outages that gateway and egress have reported: they outlive a driver, and the next one is to know what lasts."""

from collections.abc import Mapping
from typing import Any

OUTAGES = ("R613", "R730", "R791")


def lasting(status: Mapping[str, Any]) -> list[Any]:
    """Return the findings of a status without outages that are over; of one that lasts, only the latest finding.

    Args:
        status: Of a gateway or an egress.

    Example:
        >>> finding = {"code": "R613", "message": 'sink "out" cannot be reached at h:1'}
        >>> lasting({"sinks": [{"name": "out", "state": "connected"}], "diagnostics": [finding]})
        []
    """
    away = [f'sink "{sink["name"]}"' for sink in status.get("sinks", ()) if sink["state"] == "unreachable"]
    away += [f'source "{topic["name"]}"' for topic in status.get("kafka", ()) if topic["away"]]
    heads = [f"{part}{rest}" for part in away for rest in (": Kafka at ", " cannot be reached at ")]
    known: set[str] = set()
    found: list[Any] = []
    for finding in reversed(status.get("diagnostics", ())):
        if finding["code"] in OUTAGES:
            part = next((head for head in heads if finding["message"].startswith(head)), "")
            if not part or part in known:
                continue
            known.add(part)
        found.append(finding)
    return found[::-1]
