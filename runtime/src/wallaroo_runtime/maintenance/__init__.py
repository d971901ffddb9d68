"""Changes a checkpoint that is not in use: backup, rescale, replay, removal."""
