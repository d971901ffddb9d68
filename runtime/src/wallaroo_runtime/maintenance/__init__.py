"""Changes of a checkpoint that does not run: backup, rescale, replay, removal."""
