"""Sources and sinks: their configs, and the options of the command line that they come from."""
