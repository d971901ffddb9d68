"""What changes a checkpoint that does not run: backup, rescale, conversion, replay, removal."""
