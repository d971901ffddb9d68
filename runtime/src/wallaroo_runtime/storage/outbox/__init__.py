"""The outbox: published output, in files. The output of each micro-batch is published once."""
