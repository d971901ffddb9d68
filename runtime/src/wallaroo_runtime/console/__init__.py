"""Writes the terminal output of commands: reporter, status line, tables, JSON lines, the debugger's prompt."""
