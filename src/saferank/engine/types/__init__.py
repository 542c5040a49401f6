"""The arrays that the engine computes with."""
