"""Bucket calls: each processes messages, ticks and visits of one bucket. It stores all changes of states or none."""
