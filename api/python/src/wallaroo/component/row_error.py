"""Errors of columns: a value that does not fit its column, and an annotation that no column can have."""


class MisfitError(ValueError):
    """A value does not fit its column.

    Attributes:
        path: Path of the column in the row; empty if the value is not yet known to be in a column.
        reason: Text that says what is wrong with the value.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f'column "{path}" {reason}' if path else reason)
        self.path, self.reason = path, reason

    @classmethod
    def within(cls, name: str, error: Exception) -> "MisfitError":
        """Return the error for the column that contains the wrong value: with the column's name before the path."""
        if isinstance(error, cls):
            dot = "." if error.path and error.path[0] != "[" else ""
            return cls(error.reason, f"{name}{dot}{error.path}")
        return cls(str(error), name)


class NoColumnTypeError(TypeError):
    """An annotation has no type in Spark. The text has the reason, and the types that can be used."""
