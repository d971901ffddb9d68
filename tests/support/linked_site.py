"""Remote gateways and an egress over a link."""

import contextlib
from pathlib import Path

from support.link import Link
from support.remote import Site, token_setting


class LinkedSite(Site):
    """A site whose driver reaches the services through links."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "")
        self.links: dict[str, Link] = {}

    def open(self, stack: contextlib.ExitStack) -> None:
        """Make the links; the services run."""
        for service in self.services():
            self.links[service.kind] = stack.enter_context(Link(service.address))

    def options(self) -> tuple[object, ...]:
        """Return the options of `run` that name the services."""
        gateway, egress = self.links["gateway"].address, self.links["egress"].address
        return ("--gateway", gateway, "--egress", egress, *token_setting(self.token_file))
