"""What pages share: one HTML file that needs no network and no script, light and dark, on paper and on a phone.

All pieces take plain text and escape it; only `section`, `folded` and `page` take what is HTML already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from saferank.files.atomic_write import whole_file

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5c6470; --page: #fff; --card: #f5f6f8; --line: #dfe2e7;
  --good: #1a8754; --caution: #b26a00; --bad: #c62f3b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9aa3af; --page: #14171a; --card: #1e2226;
  --line: #353b42; --good: #4cc38a; --caution: #e5a13d; --bad: #ff6b74; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; }
.soft { color: var(--soft); } .source { margin: .2rem 0 1.4rem; overflow-wrap: anywhere; }
code { font: .9em/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.4rem, 1fr)); gap: .7rem; margin: 1.4rem 0; }
.tile { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.tile b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: .85rem; }
.finding { border-left: .3rem solid var(--soft); background: var(--card); border-radius: .3rem; padding: .55rem .9rem;
  margin: .55rem 0; } .finding p { margin: 0; } .finding .remedy { color: var(--soft); margin-top: .2rem; }
.finding .level { font-weight: 600; text-transform: uppercase; font-size: .75rem; letter-spacing: .04em; }
.good { border-color: var(--good); } .good .level { color: var(--good); }
.caution { border-color: var(--caution); } .caution .level { color: var(--caution); }
.bad { border-color: var(--bad); } .bad .level { color: var(--bad); }
.charts { display: grid; grid-template-columns: 55fr 45fr; gap: 1.5rem; align-items: end; } figure { margin: 0; }
@media (max-width: 46rem) { .charts { grid-template-columns: 1fr; } }
figure, .charts > * { min-width: 0; } .charts.middle { align-items: center; margin-bottom: 1rem; }
.middle th { white-space: normal; vertical-align: bottom; }
figcaption { color: var(--soft); font-size: .85rem; } .charts figcaption { min-height: 4.2em; }
svg { max-width: 100%; height: auto; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 500; color: var(--soft); } th:first-child, td:first-child { text-align: left; white-space: normal;
  min-width: 6.5rem; overflow-wrap: anywhere; }
@media (max-width: 46rem) { table { font-size: .85rem; } th, td { padding-right: .5rem; }
  th { white-space: normal; vertical-align: bottom; } }
summary { cursor: pointer; } details { margin: .5rem 0; }
pre { background: var(--card); border-radius: .5rem; padding: .8rem; font-size: .8rem; white-space: pre-wrap;
  overflow-wrap: anywhere; }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --page: #fff; --card: #f3f3f3; --line: #ccc;
  --good: #1a8754; --caution: #b26a00; --bad: #c62f3b; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  :root { font-size: 13px; } body { max-width: none; padding: 0; font-size: 10pt; }
  table { font-size: 8.5pt; } th, td { white-space: normal; padding-right: .5rem; }
  h2 { break-after: avoid; } figure, tr, .finding, .tile { break-inside: avoid; } .wide { overflow: visible; } }
"""


def page(title: str, body: Iterable[str], *, style: str = "") -> str:
    """Return the whole page around pieces of HTML; `style` is added to what all pages share."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def write_page(text: str, path: str | Path) -> None:
    """Write the page, whole or not at all."""
    with whole_file(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def section(name: str, title: str, *body: str) -> str:
    """Return a section of HTML under a heading, with `name` to link to."""
    return f'<section id="{escape(name)}">\n<h2>{escape(title)}</h2>\n' + "\n".join(body) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph; what stands between backticks is code."""
    pieces = escape(text).split("`")
    told = "".join(f"<code>{piece}</code>" if place % 2 else piece for place, piece in enumerate(pieces))
    return f'<p class="{escape(kind)}">{told}</p>' if kind else f"<p>{told}</p>"


def finding(level: str, text: str, remedy: str = "", *, word: str = "") -> str:
    """Return a box: good, caution or bad (or another word for it), what is the matter, and what to do about it."""
    more = f'<p class="remedy">{escape(remedy)}</p>' if remedy else ""
    head = f'<span class="level">{escape(word or level)}</span>'
    return f'<div class="finding {escape(level)}"><p>{head} {escape(text)}</p>{more}</div>'


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Return numbers, large, each with what it is."""
    cells = (f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in pairs)
    return f'<div class="tiles">{"".join(cells)}</div>'


def figure(svg: str, caption: str) -> str:
    """Return a chart with what it shows, unless that is empty."""
    told = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{svg}{told}</figure>"


def charts(*figures: str) -> str:
    """Return figures side by side, or one below the other where there is no room."""
    return f'<div class="charts">{"".join(figures)}</div>'


def beside(*pieces: str) -> str:
    """Return a figure and what belongs to it side by side, in the middle of each other."""
    return f'<div class="charts middle">{"".join(pieces)}</div>'


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], *, kinds: Sequence[str] = ()) -> str:
    """Return a table; `kinds` are the classes of its rows."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
    lines = []
    for place, row in enumerate(rows):
        kind = f' class="{escape(kinds[place])}"' if kinds and kinds[place] else ""
        lines.append(f"<tr{kind}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>")
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def items(texts: Iterable[str]) -> str:
    """Return a list; what stands between backticks is code."""
    return "<ul>" + "".join(f"<li>{paragraph(text)[3:-4]}</li>" for text in texts) + "</ul>"


def folded(title: str, body: str) -> str:
    """Return HTML that is shown when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"
