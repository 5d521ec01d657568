"""What must hold of every page that we write: nothing is loaded, nothing runs, nobody's text becomes markup."""

import re
from base64 import b64encode
from collections.abc import Collection
from hashlib import sha256
from html.parser import HTMLParser

# Elements that load, run or send something, or change what the others mean.
FORBIDDEN = {
    "script",
    "img",
    "link",
    "iframe",
    "object",
    "embed",
    "form",
    "base",
    "video",
    "audio",
    "use",
    "image",
}
LOADING = {"src", "href", "xlink:href", "action", "formaction", "srcset", "poster", "data", "background", "ping"}


class Page(HTMLParser):
    """A page taken apart: its elements with their attributes, its style sheet, its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.style = ""
        self.text = ""
        self._in_style = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.style += data
        else:
            self.text += data

    @property
    def policy(self) -> str:
        """The Content-Security-Policy, which must come before anything that it is to govern."""
        tags = [tag for tag, _ in self.elements[:3]]
        assert tags == ["html", "meta", "meta"], tags
        assert self.elements[1][1] == {"charset": "utf-8"}
        declared = [attributes for _, attributes in self.elements if "http-equiv" in attributes]
        assert declared == [self.elements[2][1]], "there is one, and it is the third element"
        return declared[0]["content"] or ""


def check_inert(page: str, *, links: Collection[str] = (), saves_data: bool = False) -> Page:
    """Assert all of it, and return the page taken apart. Links lead to these places alone; one may save the data."""
    taken = Page(page)
    followed = [attributes for tag, attributes in taken.elements if tag == "a"]
    if saves_data:
        [saving] = [attributes for attributes in followed if "download" in attributes]
        assert set(saving) == {"download", "data-signed", "href"}
        assert re.fullmatch("data:application/json;base64,[A-Za-z0-9+/]+=*", saving["href"] or "")
        followed.remove(saving)
    assert all(set(attributes) == {"href"} and attributes["href"] in links for attributes in followed), followed
    taken.elements = [(tag, attributes) for tag, attributes in taken.elements if tag != "a"]
    rules = dict(rule.strip().split(" ", maxsplit=1) for rule in taken.policy.split(";"))
    digest = b64encode(sha256(taken.style.encode("utf-8")).digest()).decode("ascii")
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "style-src-elem": f"'sha256-{digest}'",
        "style-src-attr": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    tags = [tag for tag, _ in taken.elements]
    assert not set(tags) & FORBIDDEN
    assert tags.count("style") == 1
    for tag, attributes in taken.elements:
        assert not LOADING & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")], tag
        assert "url(" not in (attributes.get("style") or ""), tag
    for loading in ("url(", "@import", "http:", "https:"):
        assert loading not in taken.style
    visible = page.replace("\n", "").replace("\u200c", "").replace("\u200d", "")
    assert visible.isprintable(), [character for character in visible if not character.isprintable()]
    return taken
