"""The kinds of windows: how messages and ticks change the state of a key, and which results they give."""
