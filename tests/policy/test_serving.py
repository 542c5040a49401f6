"""Ranking without any library but NumPy and safetensors, against the complete installation."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from saferank import SafeRanker
from saferank.engine.errors import DataError
from saferank.engine.plackett_luce import log_probability
from saferank.features.schema import FeatureSchema
from saferank.policy.policy import Policy, ScorerKind
from saferank.policy.scorers import score
from tests.policy.made import EXAMINATION, make_data, make_policy, make_trees

RANK = """
import json, sys
FEW = {"numpy", "safetensors", "saferank"}
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in sys.stdlib_module_names | FEW:
            raise ModuleNotFoundError("refused: " + name, name=name)
sys.meta_path.insert(0, Refuse())
import numpy as np
import saferank
out = {}
for name in sys.argv[2:]:
    policy = saferank.Policy.load(f"{sys.argv[1]}/{name}")
    given = json.load(open(f"{sys.argv[1]}/{name}.json"))
    served = policy.rank(given, [0, 4, 10])
    drawn = policy.rank(given, [0, 4, 10], serve_as="sampled", seed=5)
    out[name] = [served.scores.tolist(), served.rank.tolist(), served.exposure.tolist()]
    out[name] += [drawn.rank.tolist(), drawn.log_probability.tolist()]
try:
    saferank.SafeRanker
except ModuleNotFoundError as error:
    out["missing"] = error.name
print(json.dumps(out))
"""
OFFSETS = [0, 4, 10]


def with_text() -> Policy:
    """Trees over two numbers, one of which may be missing, and the values of a column of text."""
    columns = {"categories": {"brand": ("Acme", "Blau")}, "indicators": ("stock",), "missing": "indicator"}
    names = ("price", "stock", "brand=Acme", "brand=Blau", "stock is missing")
    kind = ScorerKind("mlp", {"hidden": [4]})
    weights = {name: tensor.numpy() for name, tensor in kind.make(len(names), seed=1).state_dict().items()}
    return Policy(kind, weights, FeatureSchema(names, **columns), EXAMINATION)  # type: ignore[arg-type]


def policies() -> dict[str, Policy]:
    made = {"linear": make_policy("linear"), "mlp": make_policy(scaling="none"), "text": with_text()}
    return made | {f"gbdt-{start}": make_trees(start) for start in ("none", "column", "linear", "mlp")}


def given(policy: Policy) -> Any:
    rows = np.random.default_rng(0).normal(scale=5, size=(10, 3)).astype(np.float32)
    if not policy.schema.categories:
        return rows.tolist()
    stock = [None if place in (2, 7) else value for place, value in enumerate(rows[:, 1].tolist())]
    brand = ["Acme", "Blau", "new", None, "Acme", "Acme", "Blau", "", "Blau", "Acme"]
    return {"other": ["x"] * 10, "brand": brand, "stock": stock, "price": rows[:, 0].tolist()}


def test_ranking_needs_numpy_and_safetensors_alone(tmp_path: Path) -> None:
    made = policies()
    for name, policy in made.items():
        policy.save(tmp_path / name)
        (tmp_path / f"{name}.json").write_text(json.dumps(given(policy)))
    ran = subprocess.run([sys.executable, "-c", RANK, tmp_path, *made], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("missing") not in ("numpy", "safetensors", "saferank")
    for name, policy in made.items():
        scores, rank, exposure, drawn_rank, chance = found[name]
        served = policy.rank(given(policy), OFFSETS)
        assert (scores, rank, exposure) == (served.scores.tolist(), served.rank.tolist(), served.exposure.tolist())
        drawn = policy.rank(given(policy), OFFSETS, serve_as="sampled", seed=5)
        assert drawn.log_probability is not None
        assert (drawn_rank, chance) == (drawn.rank.tolist(), drawn.log_probability.tolist())
        assert len(set(scores)) > 1
        loaded = SafeRanker.load(tmp_path / name)
        table = given(policy) if name != "text" else with_text_as_table(given(policy))
        np.testing.assert_array_equal(loaded.rank(table, OFFSETS).scores, served.scores)
        data = policy.schema.prepare(loaded._ranking_data(table, OFFSETS), ignore=("other",))
        np.testing.assert_allclose(served.scores, score(policy.scorer, data.features), rtol=1e-5, atol=1e-6)


def with_text_as_table(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table(columns)


def test_the_probability_of_what_is_drawn_is_that_of_the_engine() -> None:
    policy, data = make_policy(), make_data((9, 1, 2, 40))
    scale = {name: array * np.float32(30) for name, array in policy.weights.items()}
    for weights in (policy.weights, scale):
        served = Policy(policy.kind, weights, policy.schema, EXAMINATION).rank(data, serve_as="sampled", seed=1)
        ranking = np.full((data.queries, 1, 3), -1)
        for query in range(data.queries):
            order = np.argsort(served.rank[data.offsets[query] : data.offsets[query + 1]])[:3]
            ranking[query, 0, : len(order)] = order
        assert served.log_probability is not None
        expected = log_probability(served.scores, data.offsets, ranking)[:, 0]
        np.testing.assert_allclose(served.log_probability, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"price": [1.0], "stock": [1.0]}, "brand"),
        ({"price": ["cheap"], "stock": [1.0], "brand": ["Acme"]}, "price"),
        ({"price": [1.0], "stock": [1.0, 2.0], "brand": ["Acme"]}, "stock"),
        ({"price": [1.0, 2.0], "stock": [1.0, 2.0], "brand": ["Acme"]}, "brand=Acme"),
    ],
)
def test_a_wrong_column_is_named(columns: dict[str, Any], column: str) -> None:
    with pytest.raises(DataError) as raised:
        with_text().rank(columns)
    assert raised.value.column == column


def test_the_scorer_of_a_policy_has_its_weights() -> None:
    for policy in policies().values():
        state = policy.scorer.state_dict()
        assert list(state) == list(policy.weights)
        assert all(torch.equal(state[name], torch.from_numpy(array)) for name, array in policy.weights.items())
