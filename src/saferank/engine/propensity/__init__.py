"""Propensities: how likely it was that what was shown was also examined."""
