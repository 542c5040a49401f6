"""What a click is worth, such as its revenue: a number from 0 to a maximum that is stated before the log is read."""

import math

import ibis
import ibis.expr.types as ir

from saferank.engine.errors import DataError, UsageError
from saferank.logs.layouts import IDS
from saferank.logs.run_query import fetch


def check_reward(reward: str | None, most: float | None, layout: str) -> None:
    """Raise unless a reward comes with its maximum, and in a layout that has a row for each click."""
    if reward is None:
        if most is not None:
            raise UsageError(f"--reward-most {most} without a reward; name its column with --reward COLUMN.")
        return
    if layout != "long":
        raise UsageError(f"--reward {reward}: the layout {layout} has no rewards; convert the log to the layout long.")
    if most is None:
        raise UsageError(f"--reward {reward}: state the most that a click can be worth with --reward-most X.")
    if not (math.isfinite(most) and most > 0):
        raise UsageError(f"--reward-most {most}: must be a number above 0.")


def check_rewards(log: ir.Table, column: str | None, most: float | None, source: str) -> None:
    """Raise for a click on a shown document whose reward is missing, negative or above the stated maximum."""
    if column is None or most is None:
        return
    reward = log["reward"]
    wrong = reward.isnull() | reward.isnan() | (reward < 0) | (reward > most)
    clicked = ibis.coalesce(log["click"] > 0, False) & log["position"].notnull()
    bad = log.filter(clicked & ibis.coalesce(wrong, True)).order_by(*IDS).limit(1)
    for row in fetch(bad.select(*IDS, "reward")).to_pylist():
        value = "no value" if row["reward"] is None else row["reward"]
        where = ", ".join(f"{name} {row[name]}" for name in IDS)
        message = f"got {value} for {where}, but the reward of a click must be from 0 to {most:g}"
        remedy = "correct it, or state another maximum with --reward-most."
        raise DataError(f"{message}; {remedy}", file=source, column=column)
