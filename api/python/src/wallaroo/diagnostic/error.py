"""The exception that a wrong declaration raises."""

from collections.abc import Iterable
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.diagnostic.location import Location


class WallarooParameterError(DiagnosticError):
    """A declaration has faults; `diagnostics` lists all of them.

    Args:
        diagnostics: The findings, or a single one.

    Source: Wallaroo 0.1, which raised it at the first fault.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        super().__init__([diagnostics] if isinstance(diagnostics, Diagnostic) else diagnostics)

    @classmethod
    def of(cls, at: Location | None = None, **values: Any) -> "WallarooParameterError":
        """Make the error T207 for a wrong parameter at a location; `values` fill in the text of the catalogue."""
        place = at.shown()._asdict() if at else {}
        return cls(Diagnostic.of("T207", **place, **values))
