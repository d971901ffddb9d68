"""From an application to `spark-submit`."""
