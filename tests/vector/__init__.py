"""The references for windows and timers, and all test vectors, written from the specification's text alone."""
