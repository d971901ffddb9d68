"""Programs and peers for tests of connectors."""
