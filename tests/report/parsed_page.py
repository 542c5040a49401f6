"""A page, parsed: its text, its structure, and everything that a browser could fetch."""

from html.parser import HTMLParser

LINES = ("h1", "h2", "h3", "p", "li", "tr", "figcaption", "summary", "pre", "svg", "nav", "title")
"""Elements that begin a line of the snapshot."""


class Page(HTMLParser):
    """Fails if an element is not closed; `lines` is the page without its style, its JSON and the inside of charts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self._lines: list[str] = []
        self.feed(page)
        assert self.open == []

    @property
    def lines(self) -> list[str]:
        return [" ".join(line.split()) for line in self._lines]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "meta":
            self.open.append(tag)
        self.fetched += [tag] if tag in ("script", "link", "img", "iframe") else []
        self.fetched += [values[name] or "" for name in ("src", "href", "xlink:href") if name in values]
        self.ids += [values["id"] or ""] if "id" in values else []
        if tag in LINES or "tile" in (values.get("class") or "").split():
            marks = (values.get("class"), values.get("aria-label"))
            self._lines.append(" ".join([tag, *(f"[{mark}]" for mark in marks if mark)]) + ": ")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th", "b") and "svg" not in self.open:
            self._lines[-1] += " | "

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._lines and not {"svg", "pre", "style"} & set(self.open):
            self._lines[-1] += data
