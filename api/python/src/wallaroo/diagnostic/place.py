"""Places of a declaration: the call of the program that is checked, and the findings there."""

from dataclasses import dataclass, replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.location import Location


@dataclass(slots=True)
class Place:
    """Which call of the program is being looked at; findings go to `findings`."""

    method: str
    pointer: str
    location: Location
    findings: list[Diagnostic]

    def add(self, code: str, location: Location | None = None, *, remedy: str = "", **values: Any) -> None:
        """Record a finding at this place, or at another location that is known; `remedy` replaces the catalogue's."""
        at = (location if location and location.file else self.location).shown()
        finding = Diagnostic.of(code, pointer=self.pointer, file=at.file, line=at.line, **values)
        self.findings.append(replace(finding, fix=remedy or finding.fix))

    def wrong(self, parameter: str, actual: str, expected: str, *, fix: str = "") -> None:
        """Record that a parameter of the call, as it is shown, is not as expected."""
        fix = fix or f"pass {expected}"
        self.add("T207", method=self.method, parameter=parameter, actual=actual, expected=expected, fix=fix)
