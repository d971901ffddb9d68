"""All checks: importing this module fills the list, in the order in which they run."""

from conformance import handshake, stateless, stateful, sequence, spoilt, keys, output, visit, window, generator, shown  # noqa: F401, I001
from conformance import timer, crossing, damage, large, poison, release, life  # noqa: F401
