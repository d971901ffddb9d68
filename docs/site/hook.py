"""What MkDocs calls: pages written from the sources are added, names become links, pages without a place get one."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent))

import link
import reference

FETCHED = re.compile(r"<(?:script|img|iframe|link rel=.(?:stylesheet|preconnect).)[^>]*(?:src|href)=.https?://[^>]*>")
PRINTS = re.compile(r"^ *<!-- \S+ -->\n", re.MULTILINE)  # names the file of the program below, for tests
FURTHER = "Further pages"


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and the documents of the root; give pages that the menu does not name a place in it."""
    pages = {name: make() for name, make in reference.PAGES.items()} | reference.go()
    for name, page in link.ROOT_PAGES.items():
        pages[page] = link.of_root((reference.ROOT / name).read_text(encoding="utf-8"), page)
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    named = set(_named(config.nav))
    rest = sorted(file.src_uri for file in files.documentation_pages() if file.src_uri not in named)
    if rest:
        config.nav = [*config.nav, {FURTHER: rest}]
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make links of the documents and error codes that a page names."""
    markdown = PRINTS.sub("", markdown)
    return link.with_links(markdown, page.file.src_uri, {entry["code"] for entry in reference.catalogue()})


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that fetches something from another host.

    Raises:
        RuntimeError: It does.
    """
    if found := FETCHED.search(output):
        msg = f"{page.file.src_uri} is not readable without a network: {found[0]}"
        raise RuntimeError(msg)
    return output


def _named(nav: Any) -> list[str]:
    """Return the pages that a menu names."""
    if isinstance(nav, str):
        return [nav]
    parts = nav.values() if isinstance(nav, dict) else nav
    return [name for part in parts for name in _named(part)]
