"""Each number against the same one counted by hand, or one by one."""

import itertools

import numpy as np
import pytest

from saferank.doctor.effective_size import PROVEN, effective_size, exposure_by_clicks
from saferank.doctor.log_arrays import shown_pairs
from saferank.doctor.log_measures import coverage, randomness, traffic
from saferank.engine.errors import DataError
from saferank.engine.propensity.logging_exposure import estimated_logging_exposure
from saferank.engine.types.log_statistics import LogStatistics
from saferank.logs.aggregated_log import PARTS, AggregatedLog
from tests.doctor.logs import Interaction, aggregated, candidates, random_interactions

LOG = [
    ("a", ["x", "y"], ["x"]),
    ("a", ["x", "y"], []),
    ("a", ["y", "x"], ["x", "y"]),
    ("a", ["z", "y"], []),
    ("b", ["x"], ["x"]),
    ("b", ["x"], []),
    ("c", ["v", "w"], []),
]


def statistics(log: AggregatedLog) -> LogStatistics:
    return log.statistics(PARTS, shown_pairs(log))


def test_pairs_and_counts_without_features() -> None:
    pairs = shown_pairs(log := aggregated(LOG[:3], LOG[3:], cutoff=2))
    assert pairs.query_ids is not None
    assert pairs.document_ids is not None
    assert pairs.query_ids.tolist() == ["a", "b", "c"]
    assert pairs.document_ids.tolist() == ["x", "y", "z", "x", "v", "w"]
    np.testing.assert_array_equal(pairs.offsets, [0, 3, 4, 6])
    np.testing.assert_array_equal(statistics(log).shown, [[2, 1], [1, 3], [1, 0], [2, 0], [1, 0], [0, 1]])
    np.testing.assert_array_equal(statistics(log).clicked, [[1, 1], [1, 0], [0, 0], [1, 0], [0, 0], [0, 0]])
    with pytest.raises(DataError) as error:
        shown_pairs(aggregated([], cutoff=2))
    assert error.value.file == "clicks.parquet"


def test_traffic() -> None:
    found = traffic(statistics(aggregated(LOG, cutoff=2)))
    assert (found.interactions, found.queries, found.pairs, found.shown, found.clicks) == (7, 3, 6, 12, 4)
    assert found.queries_seen_once == 1
    many: list[Interaction] = [
        (q, ["x"], []) for q, times in zip("abcd", (100, 99, 9, 1), strict=True) for _ in range(times)
    ]
    found = traffic(statistics(aggregated(many, cutoff=1)))
    assert [(one.name, one.queries, one.interactions) for one in found.classes] == [
        ("1", 1, 1),
        ("2-9", 1, 9),
        ("10-99", 1, 99),
        ("100-999", 1, 100),
        ("1,000+", 0, 0),
    ]
    assert found.share_in_queries_of(10) == pytest.approx(199 / 209)
    assert found.share_in_queries_of(100) == pytest.approx(100 / 209)


def test_randomness_one_by_one() -> None:
    log = aggregated(LOG, cutoff=2, rankings=True)
    found = randomness(statistics(log), log.rankings)
    tops = {q: [ranking[0] for query, ranking, _ in LOG if query == q] for q in "ab"}
    change = {q: np.mean([one != other for one, other in itertools.permutations(top, 2)]) for q, top in tops.items()}
    assert found.top_changes == pytest.approx((4 * change["a"] + 2 * change["b"]) / 6)  # c has one interaction
    assert found.top_entropy == pytest.approx((4 * 1.5 + 2 * 0.0) / 6)  # shares 1/2, 1/4, 1/4
    assert found.documents_at_top == pytest.approx((3 + 1 + 1) / 3)
    assert found.moved == pytest.approx(2 / 3)  # x and y of a, but not x of b
    assert found.rankings == pytest.approx((3 + 1 + 1) / 3)
    assert found.most_common_ranking == pytest.approx((2 + 2) / (4 + 2))
    assert randomness(statistics(log)).rankings is None


def test_randomness_is_unbiased_for_few_interactions() -> None:
    """Five interactions a query with six documents in random order: entropy falls short, the chance of change not."""
    log = aggregated(random_interactions(2_000, 5, examination=[1.0, 1.0]), cutoff=2)
    found = randomness(statistics(log))
    assert found.top_changes is not None
    assert abs(found.top_changes - 5 / 6) <= 5 * np.sqrt(5 / 36 / 10 / 2_000)
    assert found.top_entropy is not None
    assert found.top_entropy < np.log2(5) < np.log2(6)


def test_nothing_comes_twice() -> None:
    log = aggregated([("a", ["x"], []), ("b", ["x"], ["x"])], cutoff=1, rankings=True)
    found = randomness(statistics(log), log.rankings)
    assert (found.top_changes, found.top_entropy, found.most_common_ranking) == (None, None, None)
    assert (found.moved, found.rankings) == (0.0, 1.0)


def test_coverage() -> None:
    log = aggregated(LOG[:3], LOG[3:], cutoff=2)
    data = candidates(a=["x", "y", "u", "t"], b=["x"], e=["x", "y"])
    found = coverage(log, statistics(log), shown_pairs(log), data)
    assert (found.candidates, found.never_shown) == (5, 2)
    assert found.never_shown_share == pytest.approx(2 / 5)
    assert found.never_shown_by_chance == pytest.approx((4 * 2 / 4 + 2 * 0) / 6)
    assert (found.queries_in_both, found.queries_without_features, found.queries_without_log) == (2, 1, 1)
    assert found.interactions_without_features == pytest.approx(1 / 7)
    assert found.pairs_without_features == 3  # z of a; v and w of c
    assert found.shown_without_features == pytest.approx(3 / 12)
    other = coverage(log, statistics(log), shown_pairs(log), candidates(e=["x"]))
    assert (other.queries_in_both, other.candidates, other.never_shown_by_chance) == (0, 0, 0.0)
    assert other.shown_without_features == 1.0


@pytest.mark.parametrize(
    ("theirs", "ours", "differ_in", "alike"),
    [
        (["7", "8"], ["007", "008", "9"], "leading zeros", 2),
        (["A", "B", "c"], ["a", "b", "c"], "case", 2),
        (["7.0", "8.0", "x"], ["7", "9"], "a final .0", 1),
        (["a "], ["a"], "spaces", 1),
        (["1"], ["a"], None, 0),
    ],
)
def test_ids_in_another_form(theirs: list[str], ours: list[str], differ_in: str | None, alike: int) -> None:
    log = aggregated([("q", theirs, [])], cutoff=len(theirs))
    (found,) = coverage(log, statistics(log), shown_pairs(log), candidates(q=ours)).unmatched
    assert (found.column, found.ids, found.unmatched) == ("document_id", len(theirs), len({*theirs} - {*ours}))
    assert (found.differ_in, found.alike) == (differ_in, alike)


def test_some_ids_without_features_are_no_matter_of_form() -> None:
    log = aggregated([("q", ["a", "b"], [])], cutoff=2)
    assert coverage(log, statistics(log), shown_pairs(log), candidates(q=["a"])).unmatched == ()


def test_effective_size_by_hand() -> None:
    """One query, two documents: x at rank 1 in 8 of 10 interactions. Looked at: 1 and 0.5."""
    interactions = [("a", ["x", "y"], ["x"])] * 4 + [("a", ["x", "y"], [])] * 4 + [("a", ["y", "x"], ["y"])] * 2
    log = aggregated(interactions, cutoff=2)
    found = effective_size(statistics(log), np.array([1.0, 0.5]))
    exposed = {"x": 0.8 + 0.2 * 0.5, "y": 0.2 + 0.8 * 0.5}
    halfway = {name: 0.5 + 0.5 * 0.75 / exposure for name, exposure in exposed.items()}
    total = 4 * halfway["x"] + 2 * halfway["y"]
    assert found.clicks == 6
    assert found.halfway_to_random == pytest.approx(total**2 / (4 * halfway["x"] ** 2 + 2 * halfway["y"] ** 2))
    assert found.provable_gain is None
    # x and y were clicked about as often as looked at, but x is better known: it stays first
    by_clicks = {"x": 1.0 / exposed["x"], "y": 0.5 / exposed["y"]}
    total = 4 * by_clicks["x"] + 2 * by_clicks["y"]
    assert found.by_clicks == pytest.approx(total**2 / (4 * by_clicks["x"] ** 2 + 2 * by_clicks["y"] ** 2))
    wider = effective_size(statistics(log), np.array([1.0, 0.5]), candidates=np.array([10]))
    halfway = {name: 0.5 + 0.5 * 0.15 / exposure for name, exposure in exposed.items()}
    total = 4 * halfway["x"] + 2 * halfway["y"]
    assert wider.halfway_to_random == pytest.approx(total**2 / (4 * halfway["x"] ** 2 + 2 * halfway["y"] ** 2))


def test_all_clicks_count_if_nothing_changes() -> None:
    """The logged ranking is the one by clicks, and random lists weigh every click alike."""
    fixed = [("a", ["x", "y"], ["x", "y"])] * 50 + [("a", ["x", "y"], ["x"])] * 50
    found = effective_size(statistics(aggregated(fixed, cutoff=2)), np.array([1.0, 0.9]))
    assert found.by_clicks == pytest.approx(150)
    rng = np.random.default_rng(0)
    orders = [["x", "y"], ["y", "x"]]
    shuffled = [("a", orders[i % 2], [orders[i % 2][0]] if rng.random() < 0.5 else []) for i in range(200)]
    found = effective_size(statistics(log := aggregated(shuffled, cutoff=2)), np.array([1.0, 0.5]))
    assert found.halfway_to_random == pytest.approx(statistics(log).clicks.sum())


def test_what_is_better_known_goes_first() -> None:
    """Of 40 queries, each shows a good document often, and a stranger with one lucky click once."""
    interactions = []
    for query in range(40):
        interactions += [(f"q{query}", ["good", "poor"], ["good"])] * 12 + [(f"q{query}", ["good", "poor"], [])] * 12
        interactions += [(f"q{query}", ["good", "lucky"], ["lucky"] if query == 0 else [])]
        interactions += [(f"q{query}", ["poor", "good"], [])] * 5
    found = effective_size(statistics(aggregated(interactions, cutoff=2)), np.array([1.0, 0.5]))
    assert found.by_clicks > 0.95 * found.clicks


def test_the_provable_gain_is_what_held_out_interactions_prove() -> None:
    """Against the standard error of the paired difference, taken interaction by interaction."""
    examination = [1.0, 0.5, 0.3]
    interactions = random_interactions(20, 40, examination=examination)
    log = aggregated(interactions[::2], interactions[1::2], cutoff=3)
    pairs = shown_pairs(log)
    counts = log.statistics(PARTS, pairs)
    found = effective_size(counts, np.array(examination), held_out=log.click_patterns("certify", pairs))
    assert pairs.query_ids is not None
    assert pairs.document_ids is not None
    place = {
        (pairs.query_ids[q], pairs.document_ids[row]): row for row, q in enumerate(pairs.query_of_document.tolist())
    }
    logged = estimated_logging_exposure(counts, examination)
    weight = exposure_by_clicks(counts, logged, np.array(examination)) / logged
    per_query = weight.reshape(20, 6)
    np.testing.assert_allclose(np.sort((per_query * logged.reshape(20, 6)), axis=1)[:, -3:], [[0.3, 0.5, 1.0]] * 20)
    differences = [sum(weight[place[query, d]] - 1 for d in clicked) for query, _, clicked in interactions[1::2]]
    clicks = sum(len(list(clicked)) for _, _, clicked in interactions[1::2])
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    assert found.provable_gain == pytest.approx(PROVEN * error / (clicks / len(differences)))
    nothing = aggregated(interactions, [], cutoff=3)
    held_out = nothing.click_patterns("certify", pairs)
    assert effective_size(counts, np.array(examination), held_out=held_out).provable_gain is None


def test_few_lucky_clicks_do_not_beat_many() -> None:
    """4 clicks of 5 are a higher rate than 40 of 100, and a lower bound of the relevance is lower."""
    shown = np.tile([[100], [5], [60]], (20, 1))
    log = LogStatistics(3 * np.arange(21), np.full(20, 165), shown, np.tile([[40], [4], [3]], (20, 1)))
    logged = estimated_logging_exposure(log, [1.0])
    np.testing.assert_array_equal(exposure_by_clicks(log, logged, np.array([1.0])), np.tile([1.0, 0.0, 0.0], 20))
