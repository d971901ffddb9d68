"""Shows a run from outside: as a web page, as metrics, and as status for commands."""
