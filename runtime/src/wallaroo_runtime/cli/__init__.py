"""The command `wallaroo`: one module for each of its subcommands."""
