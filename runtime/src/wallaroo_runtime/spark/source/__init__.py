"""Sources that Spark reads itself, without a gateway: the code in the driver."""
