import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saferank.engine.errors import DataError, UsageError
from saferank.lab.break_even import BreakEven, break_even_points, crossing
from saferank.lab.paper_findings import PaperFinding, paper_findings
from saferank.lab.results import (
    Metric,
    aligned,
    differences,
    nearest,
    plain_number,
    read_results,
)
from saferank.lab.results_table import ResultsTable, results_table
from saferank.report.publish import IN_MARKDOWN, latex_number, latex_table, markdown_table
from tests.lab.made_up import Row, made_up, table


def runs(method: str, n: int, values: list[float], delta: float | None = None, dataset: str = "d") -> list[Row]:
    return [(dataset, method, n, delta, run, value) for run, value in enumerate(values)]


def by_letter(results: pa.Table) -> dict[str, PaperFinding]:
    return {finding.letter: finding for finding in paper_findings(read_results(results))}


def points(rows: list[Row], margin: float = 0.0) -> dict[str, BreakEven]:
    return {point.method: point for point in break_even_points(read_results(table(rows)), margin=margin)}


def made_table(rows: list[Row] | pa.Table, metric: Metric = "ndcg") -> ResultsTable:
    return results_table(read_results(rows if isinstance(rows, pa.Table) else table(rows), metric))


def markdown(made: ResultsTable) -> str:
    return markdown_table(made.heading(), made.text_rows(IN_MARKDOWN))


SMALL = [
    *runs("logging", 0, [0.5, 0.5, 0.5]),
    *runs("skyline", 0, [0.6, 0.6, 0.6]),
    *runs("exposure-ips", 400, [0.39, 0.40, 0.41]),
    *runs("exposure-crm", 400, [0.499, 0.500, 0.501], 0.01),
    *runs("exposure-ips", 10**9, [0.589, 0.590, 0.591]),
    *runs("exposure-crm", 10**9, [0.588, 0.590, 0.592], 0.01),
    *runs("naive", 400, [0.38, 0.39, 0.40]),
    *runs("naive", 10**9, [0.539, 0.540, 0.541]),
]


def test_markdown_table_by_hand() -> None:
    made = made_table(SMALL)
    assert markdown(made).splitlines() == [
        "|  | N = 400 | N = 10⁹ |",
        "| --- | --- | --- |",
        "| Logging | 0.500 (0.000) | 0.500 (0.000) |",
        "| Skyline | 0.600 (0.000) | 0.600 (0.000) |",
        "| Naive | 0.390 (0.010) ▼ | 0.540 (0.001) ▼ |",
        "| Exposure IPS | 0.400 (0.010) ▼ | **0.590 (0.001)** ★ |",
        "| Exposure CRM | **0.500 (0.001)** | **0.590 (0.002)** |",
    ]
    assert "over 3 runs" in made.legend()
    assert "paired Student t-test" in made.legend()


def test_methods_are_tested_run_by_run() -> None:
    """A difference that is the same in every run is one, however much the runs differ; and only runs of both count."""
    rows = [
        *runs("exposure-crm", 400, [0.3, 0.4, 0.5], 0.01),
        *runs("naive", 400, [0.299, 0.3991, 0.499]),
        *runs("exposure-ips", 400, [0.299, 0.41, 0.49]),
        *runs("action-ips", 400, [0.2]),
    ]
    lines = markdown(made_table(rows)).splitlines()
    assert lines[2:] == [
        "| Naive | 0.399 (0.100) ▼ |",
        "| Action IPS | 0.200 |",
        "| Exposure IPS | **0.400 (0.096)** ★ |",
        "| Exposure CRM | **0.400 (0.100)** |",
    ]


def test_latex_table_by_hand() -> None:
    lines = latex_table(made_table(SMALL)).splitlines()
    assert lines[:6] == [
        r"\begin{tabular}{l cc}",
        r"\toprule",
        r"& \multicolumn{2}{c}{d} \\",
        r"\cmidrule(lr){2-3}",
        r"& $N = 400$ & $N = 10^{9}$ \\",
        r"\midrule",
    ]
    assert lines[8] == r"\midrule"
    assert lines[10] == (
        r"Exposure IPS & 0.400 {\small (0.010)}$^{\blacktriangledown}$"
        r" & \textbf{0.590 {\small (0.001)}}$^{\star}$ \\"
    )
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_latex_escapes_the_name_of_the_data_set() -> None:
    rows = runs("naive", 400, [0.5], dataset=r"~/a_b\c %1 & #2 $3 {x}^2")
    assert r"{\textasciitilde{}/a\_b\textbackslash{}c \%1 \& \#2 \$3 \{x\}\textasciicircum{}2} \\" in latex_table(
        made_table(rows)
    )


def test_other_metric_and_both_sources(tmp_path: Path) -> None:
    pq.write_table(table(SMALL), tmp_path / "results.parquet")
    from_file = results_table(read_results(tmp_path / "results.parquet", "ndcg_by_score"))
    assert from_file == made_table(SMALL, "ndcg_by_score")
    cell = from_file.rows["exposure-crm"][0]
    assert cell is not None
    assert cell.summary.mean == pytest.approx(0.510)


def test_a_method_above_exposure_crm_is_marked_and_a_missing_one_left_open() -> None:
    rows = [row for row in SMALL if row[1:3] != ("naive", 10**9)]
    rows += runs("exposure-crm-known", 400, [0.549, 0.550, 0.551], 0.01)
    lines = markdown(made_table(rows)).splitlines()
    assert "| Naive | 0.390 (0.010) ▼ | - |" in lines
    # It knows more than the paper's methods: never the best among them.
    assert "| Exposure CRM, logging policy known | 0.550 (0.001) ▲ | - |" in lines
    assert "| Exposure CRM | **0.500 (0.001)** | **0.590 (0.002)** |" in lines


def test_one_run_has_no_deviation_and_no_mark() -> None:
    made = made_table([row for row in SMALL if row[4] == 0])
    assert "| Naive | 0.380 | 0.539 |" in markdown(made)
    assert "over 1 run." in made.legend()
    assert not set("▼★▲") & set(markdown(made) + made.legend())


def test_data_sets_stand_side_by_side_and_the_grid_gives_the_nearest_n() -> None:
    both = pa.concat_tables([made_up(dataset="one", ablation=False), made_up(dataset="t_wo", ablation=False)])
    shown = made_table(both)
    assert [n for _, n in shown.columns] == [383, 34807006, 10**9] * 2
    assert "| one, N = 383 |" in markdown(shown)
    assert r"\multicolumn{3}{c}{one} & \multicolumn{3}{c}{t\_wo}" in latex_table(shown)
    assert r"\cmidrule(lr){2-4} \cmidrule(lr){5-7}" in latex_table(shown)
    chosen = results_table(read_results(both), interactions=[90, 110, 1e3])
    assert [n for _, n in chosen.columns] == [100, 750] * 2


def test_the_delta_nearest_to_the_asked_one_is_taken() -> None:
    rows = [*runs("exposure-crm", 400, [0.5], 0.01), *runs("exposure-crm", 400, [0.7], 1e-4)]
    results = read_results(table(rows))
    assert results.deltas("d", "exposure-crm") == [0.01, 1e-4]
    assert results.curve("d", "exposure-crm")[400] == pytest.approx([0.5])
    assert results.curve("d", "exposure-crm", 2e-4)[400] == pytest.approx([0.7])
    assert results.curve("d", "naive") == {}


def test_crossing_is_interpolated_in_log_n_and_counts_from_the_last_dip() -> None:
    def of(*means: float) -> tuple[float, str]:
        results = read_results(table([row for i, m in enumerate(means) for row in runs("naive", 10 ** (i + 2), [m])]))
        n, when = crossing(results.curve("d", "naive"), 0.5)
        return math.log10(n), when

    # From 0.4 at 10^2 to 0.6 at 10^3 the level 0.5 is half way: 10^2.5.
    for means, n, when in (
        ((0.4, 0.6, 0.7), 2.5, "at"),
        ((0.4, 0.6, 0.45, 0.65), 4.25, "at"),
        ((0.4, 0.5), 3.0, "at"),
        ((0.5, 0.6), 2.0, "before"),
        ((0.4, 0.6, 0.4), 4.0, "never"),
    ):
        assert of(*means)[0] == pytest.approx(n)
        assert of(*means)[1] == when


def test_savings_and_what_the_grid_can_say_of_them() -> None:
    rows = [
        *runs("logging", 0, [0.5]),
        *[row for n, m in ((100, 0.3), (1000, 0.3), (10000, 0.7)) for row in runs("exposure-ips", n, [m])],
        *[row for n, m in ((100, 0.4), (1000, 0.6), (10000, 0.7)) for row in runs("exposure-crm", n, [m], 0.01)],
        *[row for n, m in ((100, 0.6), (1000, 0.6), (10000, 0.7)) for row in runs("exposure-crm-known", n, [m], 0.01)],
        *[row for n, m in ((100, 0.3), (1000, 0.3), (10000, 0.4)) for row in runs("naive", n, [m])],
    ]
    found = points(rows)
    assert found["exposure-ips"].interactions == pytest.approx(10**3.5)
    assert found["exposure-ips"].saving is None
    assert found["exposure-crm"].saving == pytest.approx(1 - 10**2.5 / 10**3.5)
    assert not found["exposure-crm"].at_least
    assert found["exposure-crm-known"].saving == pytest.approx(1 - 10**2 / 10**3.5)
    assert found["exposure-crm-known"].at_least
    assert (found["naive"].when, found["naive"].saving) == ("never", None)
    texts = {method: (point.interactions_text, point.saving_text) for method, point in found.items()}
    assert texts["naive"] == ("> 10⁴", "-")
    assert texts["exposure-crm"] == ("316", "90.0%")
    assert texts["exposure-crm-known"] == ("≤ 100", "at least 96.8%")
    # A margin of 0.1 moves the line to 0.4: CRM is there from the first point on.
    assert points(rows, margin=0.1 + 1e-12)["exposure-crm"].interactions == 100.0
    # Where IPS never gets there, the end of the grid limits the saving from below.
    slow = [row for row in rows if row[1:3] != ("exposure-ips", 10000)]
    limit = points(slow)["exposure-crm"]
    assert limit.saving == pytest.approx(1 - 10**2.5 / 10**3)
    assert limit.at_least


def test_a_method_that_needs_more_saves_nothing() -> None:
    slow = {point.method: point for point in break_even_points(read_results(made_up()))}["action-crm"]
    assert slow.saving is not None
    assert slow.saving < 0
    assert "times as many" in slow.saving_text


def test_findings_that_hold() -> None:
    found = by_letter(made_up())
    assert {letter: finding.holds for letter, finding in found.items()} == dict.fromkeys("abcdef", True)
    assert "N = 383, 10 runs: logging 0.4350" in found["a"].evidence
    assert "to within 0.001 CRM" in found["b"].evidence
    assert "CRM - IPS" in found["c"].evidence
    assert "against the skyline CRM +0.00" in found["c"].evidence
    assert "by delta 0.1: " in found["e"].evidence


def shifted(results: pa.Table, amount: float, *, method: str, low: float = 0, high: float = 1e10) -> pa.Table:
    """Add to the metric of one method's rows with N from low to high."""
    rows = results.to_pylist()
    for row in rows:
        if row["method"] == method and low <= row["interactions"] <= high:
            row["ndcg"] += amount
    return pa.Table.from_pylist(rows, schema=results.schema)


@pytest.mark.parametrize(
    ("letter", "method", "amount", "low", "high"),
    [
        ("a", "exposure-crm", -0.006, 300, 500),
        ("a", "exposure-ips", 0.05, 300, 500),
        ("b", "exposure-crm", -0.02, 0, 3000),
        ("c", "exposure-ips", 0.004, 1e8, 1e10),
        ("c", "skyline", 0.02, 0, 0),
        ("d", "naive", 0.03, 1e8, 1e10),
        ("d", "action-crm", 0.03, 1e8, 1e10),
        ("f", "exposure-crm-known", -0.004, 100, 200),
    ],
)
def test_findings_that_fail(letter: str, method: str, amount: float, low: float, high: float) -> None:
    assert by_letter(shifted(made_up(), amount, method=method, low=low, high=high))[letter].holds is False


def test_ablation_that_turns_the_wrong_way() -> None:
    rows = [*runs("logging", 0, [0.5])]
    for delta, small, large in ((0.1, 0.49, 0.60), (0.01, 0.48, 0.60), (1e-3, 0.47, 0.60)):
        rows += runs("exposure-crm", 100, [small], delta) + runs("exposure-crm", 10**8, [large], delta)
    assert by_letter(table(rows))["e"].holds is False
    turned = [(d, m, n, delta, run, 0.96 - v if n == 100 else v) for d, m, n, delta, run, v in rows]
    assert by_letter(table(turned))["e"].holds is True
    lost = [(*row[:5], row[5] - (0.003 if row[2:4] == (10**8, 1e-3) else 0)) for row in turned]
    assert by_letter(table(lost))["e"].holds is False
    assert "action CRM" not in by_letter(table(turned))["e"].evidence
    both = turned + runs("action-crm", 10**8, [0.45], 0.1) + runs("action-crm", 10**8, [0.40], 1e-3)
    assert by_letter(table(both))["e"].evidence.endswith("action CRM 0.1: 0.4500, 0.001: 0.4000")


def test_findings_that_the_results_cannot_decide() -> None:
    found = by_letter(table([row for row in SMALL if row[1] in ("logging", "naive")]))
    assert all(finding.holds is None for finding in found.values())
    assert found["a"].evidence == "the results lack exposure-crm at N = 400, exposure-ips at N = 400"
    assert found["f"].evidence == "the results lack exposure-crm-known"
    # CRM and IPS both at the logging policy's level from the first point on: no saving to speak of.
    level = [*runs("logging", 0, [0.5]), *runs("exposure-ips", 100, [0.6]), *runs("exposure-crm", 100, [0.6], 0.01)]
    assert by_letter(table(level))["b"].holds is None


def test_one_run_is_said_to_be_one() -> None:
    found = by_letter(table([row for row in SMALL if row[4] == 0]))
    assert found["a"].holds is True
    assert found["a"].evidence == (
        "N = 400, one run: logging 0.5000, exposure-crm 0.4990, exposure-ips 0.3900; "
        "against logging CRM -0.0010, IPS -0.1100; too few runs for a test"
    )


def scattered(count: int, *, paired: bool) -> dict[str, PaperFinding]:
    """Exposure IPS and the other methods are below on average: by about the same in each run if paired."""
    base = [0.40, 0.60, 0.45, 0.55, 0.50][:count]
    low = [v - 0.02 for v in base] if paired else [v - 0.02 for v in base[::-1]]
    low[0] -= 0.001
    others = [row for m in ("naive", "action-ips") for row in runs(m, 10**9, low)]
    return by_letter(
        table(
            [
                *runs("logging", 0, base),
                *runs("exposure-ips", 400, low),
                *runs("exposure-crm", 400, [v + 0.001 for v in base], 0.01),
                *runs("exposure-ips", 10**9, base),
                *runs("exposure-crm", 10**9, base, 0.01),
                *runs("action-crm", 10**9, low, 0.01),
                *others,
            ]
        )
    )


@pytest.mark.parametrize("letter", ["a", "d"])
def test_few_runs_are_judged_by_the_gap_and_many_by_a_test_run_by_run(letter: str) -> None:
    too_few = "too few runs for a test"
    for count in (1, 2, 4):
        finding = scattered(count, paired=False)[letter]
        assert finding.holds is True
        assert too_few in finding.evidence
    # Five runs are enough for a test, and it finds nothing in them.
    finding = scattered(5, paired=False)[letter]
    assert finding.holds is False
    assert too_few not in finding.evidence
    # Run by run the gap is nearly the same, however far the runs are from each other.
    for count in (3, 5):
        finding = scattered(count, paired=True)[letter]
        assert finding.holds is True
        assert too_few not in finding.evidence


def test_runs_are_paired_by_their_name_not_by_their_place() -> None:
    assert [list(values) for values in aligned({0: 0.1, 1: 0.2, 2: 0.3}, {5: 0.5, 2: 0.6, 1: 0.7})] == [
        [0.2, 0.3],
        [0.7, 0.6],
    ]
    assert differences({0: 0.1, 2: 0.3}, {2: 0.25}) == pytest.approx([0.3 - 0.25])
    assert len(differences({0: 0.1}, {1: 0.1})) == 0
    # Run 0 has no value of exposure IPS yet: its logging policy, a poor one, does not count.
    rows = [
        *runs("logging", 0, [0.3, 0.5, 0.6]),
        *runs("exposure-ips", 400, [0.0, 0.4, 0.5])[1:],
        *runs("exposure-crm", 400, [0.3, 0.501, 0.601], 0.01),
    ]
    finding = by_letter(table(rows))["a"]
    assert finding.holds is True
    assert "N = 400, 2 runs: logging 0.5500" in finding.evidence
    assert "against logging CRM +0.0010, IPS -0.1000" in finding.evidence
    apart = [row for row in rows if (row[1] == "exposure-crm") == (row[4] == 0)]
    assert by_letter(table(apart))["a"].holds is None
    assert "a run at N = 400 of all of logging, exposure-crm, exposure-ips" in by_letter(table(apart))["a"].evidence


def test_break_even_and_the_lowest_run_are_against_the_same_runs_logging_policy() -> None:
    rows = [
        *runs("logging", 0, [0.3, 0.5]),
        *runs("exposure-crm-known", 100, [0.301, 0.501], 0.01),
        *runs("exposure-crm-known", 1000, [0.0, 0.499], 0.01)[1:],
    ]
    finding = by_letter(table(rows))["f"]
    assert finding.holds is True
    assert "lowest mean -0.0010 against logging, at N = 1,000" in finding.evidence
    assert "lowest single run -0.0010" in finding.evidence
    # At N = 1,000 only the run with the better logging policy is there; it is 0.001 below that, not 0.1 above the mean.
    (match,) = points(rows).values()
    assert (match.interactions, match.when) == (1000, "never")
    assert by_letter(table([*rows[:2], ("d", "exposure-crm-known", 100, 0.01, 7, 0.5)]))["f"].evidence == (
        "the results lack a run of both logging and exposure-crm-known"
    )


@pytest.mark.parametrize(
    ("ips", "crm", "holds"),
    [
        ([0.4, 0.4, 0.6], [0.6, 0.6, 0.6], True),  # at least 1 - 100 / 10^3.5
        ([0.4, 0.6, 0.6], [0.6, 0.6, 0.6], None),  # at least 1 - 100 / 10^2.5, which may be 0.89 or not
        ([0.4, 0.4, 0.4], [0.4, 0.4, 0.6], None),  # at least 1 - 10^3.5 / 10^4
        ([0.4, 0.4, 0.4], [0.4, 0.4, 0.4], None),
        ([0.6, 0.6, 0.6], [0.6, 0.6, 0.6], None),
        ([0.4, 0.6, 0.6], [0.4, 0.6, 0.6], False),
        ([0.6, 0.6, 0.6], [0.4, 0.6, 0.6], False),  # needs more, however few exposure IPS needs
        ([0.4, 0.4, 0.6], [0.4, 0.4, 0.4], False),
    ],
)
def test_the_saving_is_undecided_where_the_grid_leaves_it_open(
    ips: list[float], crm: list[float], holds: bool | None
) -> None:
    rows = [*runs("logging", 0, [0.5])]
    for i, n in enumerate((100, 1000, 10_000)):
        rows += runs("exposure-ips", n, [ips[i]]) + runs("exposure-crm", n, [crm[i]], 0.01)
    assert by_letter(table(rows))["b"].holds is holds


def test_numbers() -> None:
    assert [plain_number(n) for n in (383, 9_999, 1e4, 4e7, 34_807_005, 1e12)] == [
        "383",
        "9,999",
        "10⁴",
        "4·10⁷",
        "3.5·10⁷",
        "10¹²",
    ]
    assert [latex_number(n) for n in (400, 4e7, 1e9)] == ["400", r"4 \cdot 10^{7}", "10^{9}"]
    assert nearest([0, 100, 1000], 400) == 1000
    assert nearest([0, 100, 1000], 400, factor=2.0) is None
    assert nearest([], 400) is None


def test_results_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    pq.write_table(table([*SMALL, ("d", "dr", 100, None, 0, 0.5)]), path)
    for source, file, row, column in (
        (table(SMALL).drop_columns(["delta"]), None, None, "delta"),
        (path, path, 24, "method"),
        (table([*SMALL, ("d", "naive", 100, None, 0, math.nan)]), None, 24, "ndcg"),
        (table([("d", "naive", 100, None, 0, 0.5), ("d", "naive", 100, math.nan, 0, 0.5)]), None, 1, None),
    ):
        with pytest.raises(DataError) as error:
            read_results(source)
        assert (error.value.file, error.value.row, error.value.column) == (file, row, column)
    with pytest.raises(UsageError):
        read_results(table(SMALL), "mrr")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        made_table(runs("logging", 0, [0.5]))


def test_the_gain_is_stated_under_the_table_and_one_table_has_one() -> None:
    rows = table([*runs("logging", 0, [0.5]), *runs("exposure-crm", 100, [0.5], 0.01)])
    assert "2^label - 1" in results_table(read_results(rows)).legend()
    assert "2^label - 1" in results_table(read_results(rows.drop_columns(["gain"]))).legend()
    column = rows.schema.get_field_index("gain")
    linear = rows.set_column(column, "gain", pa.array(["linear"] * 2))
    assert "gain: the label" in results_table(read_results(linear)).legend()
    with pytest.raises(DataError) as error:
        read_results(rows.set_column(column, "gain", pa.array(["linear", "exponential"])))
    assert error.value.column == "gain"
