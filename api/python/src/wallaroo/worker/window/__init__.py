"""Windows of one step: their states, the ticks at which they are due, and the order of messages."""
