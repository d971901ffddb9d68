"""User programs: found, run as front-ends, built, packed."""
