"""What a checkpoint directory keeps, and whether a program may go on with it."""
