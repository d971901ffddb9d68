"""What is added to the Markdown of each page: names of documents and codes of errors become links."""

import posixpath
import re
from collections.abc import Collection

# Documents outside of docs/ that have a page, and its name.
ROOT_PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "topology-schema/SPECIFICATION.md": "project/specification.md",
}
ERRORS = "reference/errors.md"
CODE_SPAN = re.compile(r"(`[^`]*`|\[[^\]]*\]\([^)]*\))")
ERROR = re.compile(r"\b[TPWCRI][0-9]{3}\b")
FENCE = re.compile(r"\s*(```|~~~)")


def page_of(name: str) -> str | None:
    """Return the page of a document that prose names, or None.

    Example:
        >>> page_of("docs/kafka.md"), page_of("SECURITY.md"), page_of("app.py")
        ('kafka.md', 'project/security.md', None)
    """
    if name.startswith("docs/") and name.endswith(".md"):
        return name.removeprefix("docs/")
    return ROOT_PAGES.get(name)


def relative(target: str, page: str) -> str:
    """Return a page's address as seen from another one.

    Example:
        >>> relative("kafka.md", "internals/input.md")
        '../kafka.md'
    """
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def with_links(markdown: str, page: str, codes: Collection[str]) -> str:
    """Return the text of a page with links to the documents and error codes that it names.

    Args:
        markdown: The text; blocks of code stay as they are.
        page: Its address, seen from docs/.
        codes: The codes of the catalogue.

    Example:
        >>> with_links("See `docs/kafka.md`; R714, not `R714`.", "debug.md", {"R714"})
        'See [`docs/kafka.md`](kafka.md); [R714](reference/errors.md#r714), not `R714`.'
    """
    fenced, lines = False, []
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        is_code = fenced or FENCE.match(line) or line.startswith(("    ", "\t", "#"))
        lines.append(line if is_code else _linked(line, page, codes))
    return "\n".join(lines)


def _linked(line: str, page: str, codes: Collection[str]) -> str:
    def of_code(found: re.Match[str]) -> str:
        to = relative(ERRORS, page)
        return f"[{found[0]}]({to}#{found[0].lower()})" if found[0] in codes and page != ERRORS else found[0]

    parts = []
    for part in CODE_SPAN.split(line):
        target = page_of(part.strip("`")) if part.startswith("`") else None
        if target is not None:
            parts.append(f"[{part}]({relative(target, page)})")
        else:
            parts.append(part if part.startswith(("`", "[")) else ERROR.sub(of_code, part))
    return "".join(parts)


def of_root(text: str, page: str) -> str:
    """Return a document of the root with its links into docs/ as they are on its page."""
    return re.sub(r"\]\(docs/([^)]+)\)", lambda found: f"]({relative(found[1], page)})", text)
