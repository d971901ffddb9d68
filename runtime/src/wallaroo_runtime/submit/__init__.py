"""Starts drivers of applications: on this machine, or with `spark-submit` on a cluster."""
