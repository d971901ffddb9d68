"""Small files that survive a crash."""
