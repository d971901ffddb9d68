"""One run of an application, from start to end."""
