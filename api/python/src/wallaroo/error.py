"""The exception that a wrong declaration raises."""

from collections.abc import Iterable

from wallaroo.diagnostic import Diagnostic, DiagnosticError


class WallarooParameterError(DiagnosticError):
    """A declaration has faults; `diagnostics` lists every one of them.

    Args:
        diagnostics: The findings, or one.

    Example:
        >>> import wallaroo
        >>> try:
        ...     wallaroo.count_windows(0)
        ... except WallarooParameterError as error:
        ...     [(finding.code, finding.message) for finding in error.diagnostics]
        [('T207', 'count_windows: parameter count is 0; expected an int of 1 to 1000000000')]

    Source: Wallaroo 0.1, where the first fault raised it.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        super().__init__([diagnostics] if isinstance(diagnostics, Diagnostic) else diagnostics)
