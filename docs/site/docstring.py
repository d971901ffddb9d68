"""What griffe reads of docstrings: a section Example is one of code, as Examples is."""

import re
from typing import Any

import griffe

TITLE = re.compile(r"^( *)Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Gives sections of examples the title that griffe knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            obj.docstring.value = TITLE.sub(r"\1Examples:", obj.docstring.value)
