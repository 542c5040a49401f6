"""Training: the one loop."""
