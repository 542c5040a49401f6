from rich.console import Console

from saferank.cli.screen import number_table, tell


def test_text_is_broken_between_words_alone() -> None:
    console = Console(width=30, record=True)
    path = "folder/" * 6 + "a-very-long-name.parquet"
    tell(f"there is no file {path}; check the path.\n  [bold]1", console, headline="Error:")
    expected = ["Error: there is no file", f"{path};", "check the path.", "  [bold]1"]
    assert console.export_text().splitlines() == expected


def test_numbers_are_aligned_right_and_names_left() -> None:
    table = number_table("Title", ("name", "number"), left=["name"])
    table.add_row("a", "1")
    console = Console(width=80, record=True)
    console.print(table)
    assert "│ a    │      1 │" in console.export_text()
