"""Applications drawn at random, what they must give, and ways to run them; see `application.py`."""
