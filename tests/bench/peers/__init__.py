"""`make bench-peers`: the same work on this project and on other stream processors, from topic to topic.

`program/` has the work for each contender as its own documentation shows it, `contender.py` how each is installed and
started, `workload.py` the records and the plain reference, `verdict.py` the comparison with it, `topics.py` topics of
the broker, `process.py` a contender's processes, `measure.py` the measurements, `table.py` what is printed.
"""
