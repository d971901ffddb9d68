"""The parts of user code: decorated functions and classes, windows, and the application that consists of them."""
