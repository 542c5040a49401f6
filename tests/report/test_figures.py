import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from saferank.engine.errors import UsageError
from saferank.lab.results import LABELS, read_results
from saferank.lab.significance import summarise
from saferank.report.figures import ablation_figure, main_figure, save_figure
from tests.lab.made_up import DELTAS, LOGGING, made_up, table

TABLE = made_up(runs=3, points=8)
RESULTS = read_results(TABLE)


def layer(panel: dict[str, Any], mark: str) -> dict[str, Any]:
    found: dict[str, Any] = next(part for part in panel["layer"] if part["mark"]["type"] == mark)
    return found


def data(chart: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    source = part["data"]
    values: list[dict[str, Any]] = chart["datasets"][source["name"]] if "name" in source else source["values"]
    return values


def test_main_figure_has_all_n_and_the_zoom() -> None:
    chart = main_figure(RESULTS).to_dict()
    everything, zoom = chart["hconcat"]
    assert chart["background"] == "white"
    learned = set(TABLE["method"].to_pylist()) - {"logging", "skyline"}
    for panel, last in ((everything, 10**9), (zoom, 10**5)):
        points = data(chart, layer(panel, "line"))
        assert {point["line"] for point in points} == {LABELS[method] for method in learned}
        assert max(point["interactions"] for point in points) == last
        encoding = layer(panel, "line")["encoding"]
        assert (encoding["x"]["field"], encoding["x"]["scale"]["type"]) == ("interactions", "log")
        assert encoding["y"]["field"] == "mean"
        colours = encoding["color"]["scale"]
        assert dict(zip(colours["domain"], colours["range"], strict=True))["Exposure CRM"] == "#d55e00"
        band = layer(panel, "area")["encoding"]
        assert (band["y"]["field"], band["y2"]["field"]) == ("low", "high")
        assert {tip["field"] for tip in layer(panel, "circle")["encoding"]["tooltip"]} >= {
            "line",
            "interactions",
            "mean",
        }
    assert layer(everything, "line")["encoding"]["y"]["scale"] != layer(zoom, "line")["encoding"]["y"]["scale"]
    assert [row["name"] for row in data(chart, layer(everything, "rule"))] == ["Logging", "Skyline"]
    assert [row["level"] for row in data(chart, layer(zoom, "rule"))] == [pytest.approx(LOGGING)]


def test_points_carry_the_summary_of_their_runs() -> None:
    rows = [("d", "naive", n, None, run, 0.4 + 0.01 * run + n / 10**5) for n in (100, 1000) for run in range(3)]
    chart = main_figure(read_results(table(list(rows)))).to_dict()
    # Nothing lies beyond the zoom: one panel, and only the one method in the legend.
    (panel,) = chart["hconcat"]
    first = data(chart, layer(panel, "line"))[0]
    expected = summarise([0.401, 0.411, 0.421])
    assert (first["line"], first["interactions"], first["runs"]) == ("Naive", 100, 3)
    found = [first[name] for name in ("mean", "deviation", "low", "high")]
    assert found == pytest.approx([expected.mean, expected.deviation, expected.low, expected.high])
    assert layer(panel, "line")["encoding"]["color"]["scale"]["domain"] == ["Naive"]


def test_one_run_has_no_band() -> None:
    chart = main_figure(read_results(made_up(runs=1, points=4, ablation=False))).to_dict()
    assert all(point["low"] is None for point in data(chart, layer(chart["hconcat"][0], "area")))


def test_the_metric_is_what_is_drawn() -> None:
    by_score = main_figure(read_results(TABLE, "ndcg_by_score")).to_dict()
    expected = main_figure(RESULTS).to_dict()
    pairs = zip(*(data(chart, layer(chart["hconcat"][0], "line")) for chart in (by_score, expected)), strict=True)
    assert all(a["mean"] == pytest.approx(b["mean"] + 0.01) for a, b in pairs)
    assert layer(by_score["hconcat"][0], "line")["encoding"]["y"]["axis"]["title"] == "NDCG@5, ranked by score"


def test_a_row_for_each_data_set() -> None:
    both = read_results(pa.concat_tables([TABLE, made_up(runs=2, points=8, dataset="other")]))
    rows = main_figure(both).to_dict()["vconcat"]
    assert [panel["title"] for row in rows for panel in row["hconcat"]] == [
        "made-up, all N",
        "made-up, little data: N ≤ 100,000",
        "other, all N",
        "other, little data: N ≤ 100,000",
    ]
    assert len(ablation_figure(both).to_dict()["vconcat"]) == 2


def test_ablation_figure_has_a_panel_for_each_crm_and_a_line_for_each_delta() -> None:
    chart = ablation_figure(RESULTS).to_dict()
    assert [panel["title"] for panel in chart["hconcat"]] == ["Action CRM", "Exposure CRM"]
    for panel in chart["hconcat"]:
        colours = layer(panel, "line")["encoding"]["color"]
        assert colours["scale"]["domain"] == ["0.1", "0.01", "0.001", "0.0001", "0.00001"]
        assert len(set(colours["scale"]["range"])) == len(DELTAS)
        assert colours["title"] == "delta"
        assert {float(point["line"]) for point in data(chart, layer(panel, "line"))} == set(DELTAS)
        assert [row["name"] for row in data(chart, layer(panel, "rule"))] == ["Logging"]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_deltas_has_colours(count: int) -> None:
    deltas = [10.0**-k for k in range(1, count + 1)]
    rows = [("d", "exposure-crm", n, delta, 0, 0.4) for n in (100, 1000) for delta in deltas]
    (panel,) = ablation_figure(read_results(table(list(rows)))).to_dict()["hconcat"]
    assert len(layer(panel, "line")["encoding"]["color"]["scale"]["range"]) == count


def test_files_are_written_and_the_page_opens_offline(tmp_path: Path) -> None:
    save_figure(main_figure(RESULTS), tmp_path / "figures", "main")
    paths = {kind: tmp_path / "figures" / f"main.{kind}" for kind in ("png", "svg", "html")}
    head = paths["png"].read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    (width,) = struct.unpack(">I", head[16:20])
    # Twice the width of README's column, so that it is sharp there.
    assert 1700 <= width <= 1900
    drawing = ElementTree.parse(paths["svg"]).getroot()
    assert drawing.tag.endswith("svg")
    words = "".join(drawing.itertext())
    assert all(word in words for word in ("Logging", "Skyline", "Exposure CRM, logging policy known", "100M", "1B"))
    page = paths["html"].read_text()
    assert "Exposure CRM" in page
    assert not re.search(r"<(script|link)[^>]*(src|href)\s*=\s*[\"']?(https?:)?//", page)
    assert not re.search(r"\bimport\s*(\(|[^;\n]{0,80}from)\s*[\"']https?:", page)


def test_nothing_to_draw() -> None:
    only_logging = read_results(table([("d", "logging", 0, None, 0, 0.5)]))
    for draw in (main_figure, ablation_figure):
        with pytest.raises(UsageError):
            draw(only_logging)
