"""Case folders of `wallaroo test`: input, expected output, a run in this process."""
