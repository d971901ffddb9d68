"""Finds lasting outages in the status of gateway and egress, which outlive a driver, for the next driver to report."""

from collections.abc import Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import Kind, kind_of


def lasting(status: Mapping[str, Any]) -> list[Any]:
    """Return the findings of a status. Of the outages, only those that still last are included, each once.

    Args:
        status: Status of a gateway or an egress.

    Example:
        >>> finding = {"code": "R613", "message": 'sink "out" cannot be reached at h:1'}
        >>> lasting({"sinks": [{"name": "out", "outage": None}], "diagnostics": [finding]})
        []
    """
    others = [each for each in status.get("diagnostics", ()) if kind_of(each["code"]) is not Kind.OUTAGE]
    parts = (*status.get("sinks", ()), *status.get("kafka", ()))
    return others + [part["outage"] for part in parts if part["outage"]]
