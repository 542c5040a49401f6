"""A made-up results.parquet in the paper's shape: what the summaries and figures are tried on."""

import math

import numpy as np
import pyarrow as pa

from saferank.lab.reproduce import SCHEMA

LOGGING, SKYLINE = 0.435, 0.479
DELTAS = (0.1, 0.01, 1e-3, 1e-4, 1e-5)
Row = tuple[str, str, int, float | None, int, float]


def table(rows: list[Row]) -> pa.Table:
    """Rows (dataset, method, interactions, delta, run, ndcg) as results; ndcg_by_score is 0.01 higher."""
    columns = [[row[i] for row in rows] for i in range(6)]
    by_score = [row[5] + 0.01 for row in rows]
    training = [[1.5] * len(rows), [4] * len(rows), [14] * len(rows)]
    more = [["position-based"] * len(rows), [0.3] * len(rows)]
    return pa.table([*columns, by_score, *training, ["exponential"] * len(rows), *more], schema=SCHEMA)


def mean_ndcg(method: str, interactions: int, delta: float = 0.01) -> float:
    """A curve like the paper's on MSLR-WEB30k."""
    x = math.log10(interactions)
    rise = 0.47 + 0.011 * min(1.0, (x - 2) / 7) - 0.085 * math.exp(-0.6 * (x - 2))
    if method == "exposure-ips":
        return rise - 0.03 * math.exp(-0.6 * (x - 2))
    if method == "exposure-crm":
        kept = 0.0 if delta <= 1e-5 else 0.01 * (math.log10(delta) + 5) / 4
        return max(rise, LOGGING - (0.03 + 2 * kept) * math.exp(-6.0 * (x - 2)))
    if method == "exposure-crm-known":
        return max(mean_ndcg("exposure-crm", interactions), LOGGING)
    end, loss = {
        "naive": (0.448, 0.10),
        "action-ips": (0.448, 0.12),
        "action-crm": (0.447, 0.16 + 0.02 * (math.log10(0.01) - math.log10(delta))),
    }[method]
    return end - loss * math.exp(-0.9 * (x - 2))


def made_up(
    *, runs: int = 10, points: int = 25, dataset: str = "made-up", ablation: bool = True, seed: int = 0
) -> pa.Table:
    """All methods on a log-spaced grid from 1e2 to 1e9, noise falling with N; with the delta ablation if asked for."""
    noise = np.random.default_rng(seed)
    grid = [round(n) for n in np.geomspace(1e2, 1e9, points)]
    rows: list[Row] = []
    for run in range(runs):
        rows.append((dataset, "logging", 0, None, run, LOGGING))
        rows.append((dataset, "skyline", 0, math.nan, run, SKYLINE + 0.001 * noise.normal()))
        for method in ("naive", "action-ips", "action-crm", "exposure-ips", "exposure-crm", "exposure-crm-known"):
            deltas = (DELTAS if ablation and "known" not in method else (0.01,)) if "crm" in method else (None,)
            for delta in deltas:
                for n in grid:
                    spread = 0.001 + (0.0 if "exposure-crm" in method else 0.03) / math.log10(n) ** 2
                    value = mean_ndcg(method, n, delta or 0.01) + spread * noise.normal()
                    rows.append((dataset, method, n, delta, run, value))
    return table(rows)
