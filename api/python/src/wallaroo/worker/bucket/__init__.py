"""Bucket calls: each processes messages, ticks and visits of one bucket, and stores all changes of states or none."""
