"""Propensities: how likely what was shown was to be looked at."""
