"""Sources and sinks: their configs, and the command line options with which they are configured."""
