"""Choices of the verdict that learning and planning must share, because they predict it."""

WEIGHTS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
"""Limits of the weight of a click, of which the verdict chooses the one that it can prove most with."""
RANGE = 0.2
"""A given curve is raised to the powers 1 - RANGE and 1 + RANGE, to allow for a flatter and a steeper one."""
POWER = 0.8
"""Chance with which the interactions that are said to be needed decide."""
FIRST_LOOK = 0.5
"""Share of delta that the first look at a log has: see `Ledger.share`."""
