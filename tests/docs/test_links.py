"""Links between pages lead to a page, a folder or a file, and to a heading that is there."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from blocks import ROOT, name_of, pages

PAGES = {name_of(page): page for page in [*pages(), ROOT / "CHANGELOG.md"]}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


def prose_of(page: Path) -> str:
    return _FENCED.sub("", page.read_text("utf-8"))


def anchors_of(page: Path) -> set[str]:
    """What a heading is linked by: lower case, no punctuation, hyphens for spaces, a number for the same once more."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose_of(page), flags=re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        count = 0
        while (name := f"{anchor}-{count}" if count else anchor) in found:
            count += 1
        found.add(name)
    return found


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = PAGES[name]
    faults = []
    for link in _LINK.findall(prose_of(page)):
        if "://" in link:
            continue
        place, _, anchor = unquote(link).partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists():
            faults.append(f"{link}: no such file")
        elif anchor and anchor not in anchors_of(target):
            faults.append(f"{link}: no such heading")
    assert faults == []


def test_every_page_is_reached_from_the_front_page() -> None:
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        places = [link.partition("#")[0] for link in _LINK.findall(prose_of(page)) if "://" not in link]
        targets = [(page.parent / place).resolve() for place in places if place]
        ahead += [target for target in targets if target.suffix == ".md"]
        ahead += [found for target in targets if target.is_dir() for found in target.glob("*.md")]
    assert set(pages()) - reached == set()


def test_anchors_are_those_that_readers_are_given(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# 9.2 Evidence, with *noise*\n\n```text\n# no heading\n```\n\n## [Logs](logs.md)\n\n## Logs\n", "utf-8"
    )
    assert anchors_of(page) == {"92-evidence-with-noise", "logs", "logs-1"}
