from rich.console import Console

from saferank.cli.screen import number_table


def test_numbers_are_aligned_right_and_names_left() -> None:
    table = number_table("Title", ("name", "number"), left=["name"])
    table.add_row("a", "1")
    console = Console(width=80, record=True)
    console.print(table)
    assert "│ a    │      1 │" in console.export_text()
