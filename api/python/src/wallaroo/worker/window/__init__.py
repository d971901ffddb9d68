"""Windows of one step: their states, when ticks concern them, and the order of messages."""
