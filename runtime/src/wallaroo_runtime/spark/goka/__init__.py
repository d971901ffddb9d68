"""Groups that continue Goka's own processors."""
