"""What a click is worth, such as its revenue: a number from 0 to a maximum that is stated before the log is read."""

import math
from typing import TYPE_CHECKING

import ibis

from saferank.engine.errors import DataError, UsageError
from saferank.logs.layouts import IDS
from saferank.logs.source import fetch

if TYPE_CHECKING:
    from saferank.logs.click_log import ClickLog


def check_reward(reward: str | None, most: float | None, layout: str) -> None:
    """Raise unless a reward comes with its maximum, and in a layout that has a row for each click."""
    if reward is None:
        if most is not None:
            raise UsageError(f"--reward-most {most} without a reward; name its column with --reward COLUMN.")
        return
    if layout != "long":
        raise UsageError(f"--reward {reward}: the layout {layout} has no rewards; bring the log to the layout long.")
    if most is None:
        raise UsageError(f"--reward {reward}: state the most that a click can be worth with --reward-most X.")
    if not (math.isfinite(most) and most > 0):
        raise UsageError(f"--reward-most {most}: must be a number above 0.")


def check_rewards(log: "ClickLog") -> None:
    """Raise for a click on a shown document whose reward is missing, negative or above the stated maximum."""
    if log.reward is None or log.reward_most is None:
        return
    rows, reward = log.table, log.table["reward"]
    wrong = reward.isnull() | reward.isnan() | (reward < 0) | (reward > log.reward_most)
    clicked = ibis.coalesce(rows["click"] > 0, False) & rows["position"].notnull()
    bad = rows.filter(clicked & ibis.coalesce(wrong, True))
    for row in fetch(bad.order_by(*IDS).limit(1).select(*IDS, "reward")).to_pylist():
        value = "no value" if row["reward"] is None else row["reward"]
        where = ", ".join(f"{name} {row[name]}" for name in IDS)
        message = f"got {value} for {where}, but the reward of a click must be from 0 to {log.reward_most:g}"
        remedy = "correct it, or state another maximum with --reward-most."
        raise DataError(f"{message}; {remedy}", file=log.source.name, column=log.reward)
