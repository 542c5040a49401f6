"""How long a service takes to start and to rank, without PyTorch, Numba, LightGBM, Arrow or any other heavy library.

python benchmarks/serving.py [CALLS]

A process that cannot import them loads a model of each kind of scorer and ranks 100 candidates with 20 features, again
and again. Fails if the import takes over 0.3 s, or 1% of the calls over 1 ms, of processor time; time on the clock is
shown too, but on a busy machine says more about the others. Compared with what others take for the scores alone, in
this run: LightGBM for its trees, onnxruntime for the exported model.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import thread_time

import lightgbm
import numpy as np
import onnxruntime
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from saferank.export.export_policy import FORMATS
from saferank.features.schema import FeatureSchema
from saferank.learning.lightgbm_trees import forest_of
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import make_scorer, weights_of
from saferank.policy.scorers.trees import Trees

FEATURES, TREES, CANDIDATES = 20, 200, 100
MOST_IMPORT, MOST_RANK = 0.3, 1e-3
REFUSED = (
    "torch", "numba", "llvmlite", "lightgbm", "scipy", "pyarrow", "duckdb", "ibis", "pandas", "polars", "pydantic",
    "typer", "rich", "altair", "jinja2", "onnx", "onnxruntime", "sklearn",
)  # fmt: skip
REFUSE = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {REFUSED}:
            raise ModuleNotFoundError("refused: " + name, name=name)
sys.meta_path.insert(0, Refuse())
"""
LOAD = REFUSE + "from saferank import Policy\nimport saferank.policy.model_folder\n"
RANK = (
    LOAD
    + """
import json
from time import perf_counter, thread_time
import numpy as np
rows, rng, calls = np.load(sys.argv[2]), np.random.default_rng(0), int(sys.argv[3])
policy, out = Policy.load(sys.argv[1]), {}
for serve_as in ("deterministic", "sampled"):
    policy.rank(rows, serve_as=serve_as, seed=rng)
    times = []
    for _ in range(calls):
        clock, processor = perf_counter(), thread_time()
        policy.rank(rows, serve_as=serve_as, seed=rng)
        times.append((perf_counter() - clock, thread_time() - processor))
    out[serve_as] = np.quantile(times, [0.5, 0.99], axis=0).tolist()
print(json.dumps(out))
"""
)


def run_python(script: str, *arguments: object) -> str:
    """Run a script with compiled modules, as pip installs them, and return what it prints."""
    call = [sys.executable, "-c", script, *map(str, arguments)]
    with_cache = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "saferank-benchmark-pycache")}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | with_cache
    return subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True, env=env).stdout


def import_seconds(script: str, repeats: int = 15) -> float:
    """Median processor time beyond that of Python itself."""

    def used(code: str) -> float:
        before = os.times()
        run_python(code)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return median(used(script) - used("pass") for _ in range(repeats))


def make_policy(scorer: str) -> tuple[Policy, lightgbm.Booster | None]:
    schema = FeatureSchema(tuple(f"f{place}" for place in range(FEATURES)))
    if scorer != "gbdt":
        return Policy(ScorerKind(scorer), weights_of(make_scorer(scorer, FEATURES, seed=0)), schema, np.ones(10)), None
    rng = np.random.default_rng(0)
    x = rng.random((20_000, FEATURES)).astype(np.float32)
    settings = {"verbose": -1, "num_leaves": 31, "num_threads": 1, "max_bin": 63}
    booster = lightgbm.train(settings, lightgbm.Dataset(x, np.sin(6 * x).sum(axis=1) + rng.normal(size=len(x))), TREES)
    trees = Trees(FEATURES)
    trees.grow(forest_of(booster))
    return Policy(ScorerKind("gbdt", trees.settings), weights_of(trees), schema, np.ones(10)), booster


def quantiles(call: Callable[[], object], calls: int) -> tuple[float, float]:
    """Median and 99th percentile of the processor time of this thread."""
    call()
    times = []
    for _ in range(calls):
        began = thread_time()
        call()
        times.append(thread_time() - began)
    half, most = np.quantile(times, [0.5, 0.99])
    return float(half), float(most)


def others(
    policy: Policy, booster: lightgbm.Booster | None, rows: NDArray[np.float32]
) -> dict[str, Callable[[], object]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(FORMATS["onnx"].encode(policy, "m"), options)
    found: dict[str, Callable[[], object]] = {"onnxruntime": lambda: session.run(["scores"], {"features": rows})}
    if booster is not None:
        found["LightGBM"] = lambda: booster.predict(rows, num_threads=1)
    return found


def main() -> int:
    calls = int(float(sys.argv[1])) if len(sys.argv) > 1 else 2000
    start = import_seconds(LOAD)
    bare = import_seconds("import numpy")
    print(f"Import: {start:.2f} s of processor time, of which NumPy {bare:.2f} s; at most {MOST_IMPORT} s.")
    table = Table(title=f"Milliseconds to rank {CANDIDATES} candidates, {calls:,} calls", title_justify="left")
    for column in ("scorer", "served", "clock p50", "p99", "processor p50", "p99", "scores by others, p50 / p99"):
        table.add_column(column, justify="left" if column in ("scorer", "served") else "right")
    rows, slowest = np.random.default_rng(1).normal(size=(CANDIDATES, FEATURES)).astype(np.float32), 0.0
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        for scorer in ("linear", "mlp", "gbdt"):
            policy, booster = make_policy(scorer)
            policy.save(Path(folder) / scorer)
            found = json.loads(run_python(RANK, Path(folder) / scorer, Path(folder) / "rows.npy", calls))
            compared = {name: quantiles(call, calls) for name, call in others(policy, booster, rows).items()}
            text = ", ".join(f"{name} {1e3 * half:.2f} / {1e3 * most:.2f}" for name, (half, most) in compared.items())
            for serve_as, ((clock, processor), (late, slow)) in found.items():
                figures = [f"{1e3 * seconds:.2f}" for seconds in (clock, late, processor, slow)]
                table.add_row(scorer, serve_as, *figures, text if serve_as == "deterministic" else "")
                slowest = max(slowest, slow)
    Console(width=140).print(table)
    return int(start > MOST_IMPORT or slowest > MOST_RANK)


if __name__ == "__main__":
    sys.exit(main())
