"""Loads and checks, in the driver, the sources that Spark reads itself, without a gateway."""
