"""The exception for wrong declarations, and `Place`: a call of the program about which checks record findings."""

from dataclasses import dataclass, replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.diagnostic.location import Location


class WallarooParameterError(DiagnosticError):
    """A declaration has faults; `diagnostics` lists all of them.

    Source: Wallaroo 0.1, which raised it at the first fault.
    """

    @classmethod
    def of(cls, at: Location | None = None, **values: Any) -> "WallarooParameterError":
        """Make the error T207 for a wrong parameter at a location; `values` fill in the text of the catalogue."""
        place = at.shown()._asdict() if at else {}
        return cls(Diagnostic.of("T207", **place, **values))


@dataclass(slots=True)
class Place:
    """A call in the user's program that declares a part, e.g. `to`. Findings about the call are added here.

    Attributes:
        method: Name of the called method.
        pointer: Place of the part in the topology document, as a JSON pointer.
        location: Place of the call in the program.
        findings: The findings about the whole application.
    """

    method: str
    pointer: str
    location: Location
    findings: list[Diagnostic]

    def add(self, code: str, location: Location | None = None, *, remedy: str = "", **values: Any) -> None:
        """Record a finding at `location`; without one, at this call. `remedy` replaces the catalogue's remedy."""
        at = (location if location and location.file else self.location).shown()
        finding = Diagnostic.of(code, pointer=self.pointer, file=at.file, line=at.line, **values)
        self.findings.append(replace(finding, fix=remedy or finding.fix))

    def take(self, finding: Diagnostic) -> None:
        """Record a finding that has no place in the topology document yet. It gets the place of this call."""
        self.findings.append(replace(finding, pointer=self.pointer))

    def wrong(self, parameter: str, actual: str, expected: str, *, fix: str = "") -> None:
        """Record T207: a parameter of the call has a wrong value. `actual` is the value as text."""
        fix = fix or f"pass {expected}"
        self.add("T207", method=self.method, parameter=parameter, actual=actual, expected=expected, fix=fix)
