"""What user code is made of: decorated functions and classes, windows, and the application of them all."""
