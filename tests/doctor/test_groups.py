"""Rankings that follow a column of the log: found with demand that does too, and left alone without it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from saferank.doctor.diagnosis import diagnose
from saferank.doctor.groups import Group
from saferank.doctor.log_arrays import sampled_impressions, shown_pairs
from saferank.logs.aggregated_log import AggregatedLog
from saferank.logs.load_log import load_log
from saferank.verdict.checks import Refused
from saferank.verdict.log_doubts import log_doubts
from tests.shops import World, make_shop, noisy

INTERACTIONS = 4_000
"""Of each device."""


def table(seed: int, *, demand: bool, ranker: bool, power: float = 1.0) -> pa.Table:
    """The log of a shop whose phones want other documents, are shown others, or look less (or more) far down."""
    rng = np.random.default_rng(seed)
    size = {"queries": 25, "documents": 8, "cutoff": 4}
    desk, other = (make_shop(rng, **size) for _ in range(2))
    phone = replace(desk, examination=desk.examination**power)
    if demand:
        logits = [np.log(one.relevance / (1.0 - one.relevance)) for one in (desk, other)]
        phone = replace(phone, relevance=1.0 / (1.0 + np.exp(-(0.8 * logits[0] + 0.6 * logits[1] + 0.6))))
    at_desk = noisy(desk, rng, noise=0.5)
    on_phone = noisy(phone, rng, noise=0.5) if ranker else at_desk
    logs = [World(shop, one).draw(INTERACTIONS, rng).table() for shop, one in ((desk, at_desk), (phone, on_phone))]
    ids = pc.add(logs[1]["impression_id"], INTERACTIONS)
    logs[1] = logs[1].set_column(0, "impression_id", ids)
    named = [
        log.append_column("device", pa.repeat(name, len(log)))
        for log, name in zip(logs, ("desk", "phone"), strict=True)
    ]
    return pa.concat_tables(named)


def found(log: AggregatedLog) -> tuple[tuple[Group, ...], set[str]]:
    health = diagnose(log, em=False, replicates=2)
    return health.groups, {one.code for one in health.blocking}


def test_both_follow_the_device() -> None:
    log = load_log(table(0, demand=True, ranker=True))
    (group,), codes = found(log)
    assert (group.column, group.follows_demand) == ("device", True)
    assert "ranker-follows-group" in codes
    with pytest.raises(Refused) as refused:
        log_doubts(log, known=False)
    assert refused.value.code in ("ranker-follows-group", "not-position-based")


@pytest.mark.parametrize(
    ("demand", "ranker", "power"), [(True, False, 1.0), (False, True, 1.0), (False, True, 0.5), (False, False, 1.0)]
)
def test_one_of_them_alone_does_no_harm_nor_does_another_curve(demand: bool, ranker: bool, power: float) -> None:
    log = load_log(table(1, demand=demand, ranker=ranker, power=power))
    health = diagnose(log, em=False, replicates=2)
    (group,) = health.groups
    assert group.ranker.significant == ranker
    assert not group.follows_demand
    codes = {one.code for one in health.findings}
    assert "ranker-follows-group" not in codes
    assert ("ranker-by-group" in codes) == ranker


def test_columns_that_tell_no_groups_apart(tmp_path: Path) -> None:
    log = table(2, demand=False, ranker=True)
    impression = log["impression_id"].to_numpy()
    clicked = np.isin(impression, impression[log["click"].to_numpy() > 0])
    rows = np.arange(len(log))
    log = log.append_column("clicked_any", pa.array(clicked))  # what users did
    log = log.append_column("brand", pa.array((rows % 3).astype(str)))  # of the document
    log = log.append_column("session", pa.array((impression % 500).astype(str)))  # far too many
    log = log.append_column("member", pa.array(impression % 2 == 0))
    log = log.append_column("price", pa.array(rows % 7))
    log = log.append_column("weekday", pa.array(impression % 7))
    pq.write_table(log, tmp_path / "log.parquet")
    aggregated = load_log(tmp_path / "log.parquet")
    assert aggregated.manifest["groups"] == ["device", "clicked_any", "member", "weekday"]
    groups, _ = found(aggregated)
    assert [group.column for group in groups] == ["device", "member", "weekday"]
    assert not groups[1].ranker.significant

    aggregated.write(tmp_path / "stats")
    again, _ = found(AggregatedLog.read(tmp_path / "stats"))
    assert again == groups


def test_missing_values_a_segment_numbers_and_markets() -> None:
    log = table(0, demand=True, ranker=True)
    device = log["device"].to_numpy(zero_copy_only=False).astype(object)
    device[np.random.default_rng(0).random(len(device)) < 0.02] = None  # of single rows
    device[log["impression_id"].to_numpy() % 50 == 0] = None  # of whole impressions
    holes = log.set_column(log.schema.get_field_index("device"), "device", pa.array(device))
    phone = log.set_column(
        log.schema.get_field_index("device"), "phone", pc.equal(log["device"], "phone").cast("int64")
    )
    number = pc.cast(pc.bit_wise_and(log["impression_id"], 1), pa.string())
    codes = np.where(device == "phone", 1.0, np.where(device == "desk", 2.0, np.nan))  # as pandas holds whole numbers
    fractions = log.set_column(log.schema.get_field_index("device"), "device", pa.array(codes))
    market = log.set_column(
        log.schema.get_field_index("device"), "market", pc.binary_join_element_wise(log["device"], number, "-")
    )
    for one, segment in ((holes, None), (log, "device"), (phone, None), (fractions, None), (market, None)):
        (group,), _ = found(load_log(one, segment=segment))
        assert group.follows_demand


def test_lists_of_different_lengths_hide_nothing() -> None:
    """Ranks that only one device fills say nothing about the other."""
    log = table(0, demand=True, ranker=True)
    shown = pc.or_(pc.equal(log["device"], "desk"), pc.less_equal(log["position"], 2))
    (group,), _ = found(load_log(log.filter(shown)))
    assert group.follows_demand


def test_of_many_values_several_count_as_one() -> None:
    log = table(0, demand=True, ranker=True)
    names = np.array([f"shop {number}" for number in range(150)])
    log = log.append_column("shop", pa.array(names[log["impression_id"].to_numpy() % 150]))
    made = load_log(log)
    assert made.manifest["groups"] == ["device", "shop"]
    assert made.manifest["untested_groups"] == ["shop"]
    pairs = shown_pairs(made)
    sample = sampled_impressions(made, pairs)
    assert sample is not None
    shops = np.bincount(sample.groups["shop"])
    assert len(shops) == 100
    assert shops[:50].mean() == pytest.approx(2 * shops[50:].mean(), rel=0.05)  # two shops each, and one


def test_columns_that_cannot_be_tested_are_named() -> None:
    log = table(2, demand=False, ranker=False)
    impression = log["impression_id"].to_numpy()
    for name, values in {"shop": 150, "visit": 2_000, **{f"flag_{number}": 2 for number in range(16)}}.items():
        log = log.append_column(name, pa.array(np.array([f"v{one}" for one in range(values)])[impression % values]))
    health = diagnose(load_log(log), em=False, replicates=2)
    assert health.untested_groups == ("flag_12", "flag_13", "flag_14", "flag_15", "shop")
    (doubt,) = [one for one in health.findings if one.code == "groups-not-tested"]
    assert "flag_15 or shop" in doubt.text
    (tested,) = [one for one in health.findings if one.code == "groups-tested"]
    assert "device, flag_0, flag_1" in tested.text


def test_a_nested_log_and_a_folder_without_groups(tmp_path: Path) -> None:
    rows = table(0, demand=True, ranker=True).to_pandas()
    lists = rows.groupby("impression_id").agg(
        query_id=("query_id", "first"), timestamp=("timestamp", "first"), device=("device", "first"),
        document_ids=("document_id", list), clicks=("click", list),
    )  # fmt: skip
    nested = load_log(lists.reset_index())
    (group,), _ = found(nested)
    assert group.follows_demand
    nested.write(tmp_path / "stats")
    file = tmp_path / "stats" / "sample.parquet"
    pq.write_table(pq.read_table(file).drop_columns("groups"), file)
    older = AggregatedLog.read(tmp_path / "stats")
    older.manifest.pop("groups")
    assert found(older)[0] == ()
