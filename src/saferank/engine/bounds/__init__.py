"""Confidence bounds of the improvement."""
