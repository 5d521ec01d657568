"""What the parts of a page are made of: tables, lists of facts, numbers, and text of others. All of it is HTML."""

from collections.abc import Iterable, Sequence

from agentmark.report.html import isolated

# Long enough for any name that people use; the data has the rest.
NAME_LEN, SENTENCE_LEN = 48, 450


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = (), css: str = "") -> str:
    """Cells are HTML. On a phone each row becomes a block, and each cell but the first says what it is."""
    right = [" class=n" if i in numbers else "" for i in range(len(heads))]
    opened = [f"<td{right[i]}" + (f' data-label="{head}">' if i else ">") for i, head in enumerate(heads)]
    head = "".join(f"<th scope=col{right[i]}>{head}" for i, head in enumerate(heads))
    body = "\n".join("<tr>" + "".join(start + cell for start, cell in zip(opened, row, strict=True)) for row in rows)
    return f'<table class="fold {css}"><thead><tr>{head}</thead><tbody>{body}</tbody></table>'


def facts(pairs: Iterable[tuple[str, str]], *, css: str = "") -> str:
    rows = "".join(f"<dt>{name}<dd>{fact}" for name, fact in pairs)
    return f'<dl class="{css}">{rows}</dl>' if css else f"<dl>{rows}</dl>"


def bullets(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}' for item in items)}</ul>"


def bits(number: str | None) -> str:
    return "ruled out" if number is None else f"{rounded(number)} bits"


def evidence(number: str | None, *, sign: str = "") -> str:
    return "ruled out" if number is None else rounded(number, sign=sign)


def rounded(number: str, *, sign: str = "") -> str:
    # Typographic minus, so that the sign is not lost in a narrow column.
    return f"{round(float(number), 1) + 0.0:{sign},.1f}".replace("-", "\u2212")


def text(words: str, limit: int | None = NAME_LEN) -> str:
    """Text that was read."""
    return isolated(words, limit)


def paragraph(words: str, limit: int | None = None) -> str:
    """Text that was read and may have lines of its own."""
    if limit is not None and len(words) > limit:
        words = f"{words[:limit]}…"
    return "<br>".join(isolated(line) for line in words.splitlines())
