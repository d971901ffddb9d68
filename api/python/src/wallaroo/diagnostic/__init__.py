"""Findings with their codes, the places of user code that they name, and kill points for tests."""
