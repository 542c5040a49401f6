"""Experiments: the paper, reproduced."""
