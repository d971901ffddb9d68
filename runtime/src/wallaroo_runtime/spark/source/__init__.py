"""Sources that Spark reads itself, as the driver sees them."""
