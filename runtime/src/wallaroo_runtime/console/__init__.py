"""Writes the output of commands: progress of a run, status line, tables, JSON lines, the debugger's prompt."""
