"""What the lowerings of a plan have in common."""
