"""The exception that a wrong declaration raises."""

from collections.abc import Iterable

from wallaroo.diagnostic import Diagnostic, DiagnosticError


class WallarooParameterError(DiagnosticError):
    """A declaration has faults; `diagnostics` lists every one of them.

    Args:
        diagnostics: The findings, or one.

    Source: Wallaroo 0.1, where the first fault raised it.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        super().__init__([diagnostics] if isinstance(diagnostics, Diagnostic) else diagnostics)
