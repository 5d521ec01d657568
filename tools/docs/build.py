"""The documents and the API reference as HTML: `make docs` writes them to build/docs.

The reference comes from pdoc, which imports the public modules and reads their docstrings. The pages are README.md,
docs/ and their neighbours, with links that lead from page to page. What is written is checked at the end: every public
name has its place in the reference, and every link leads to a file.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import ModuleType
from urllib.parse import unquote

import pdoc
import pdoc.render
from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markdown_it.token import Token

import agentmark

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "build" / "docs"
REFERENCE = "reference"

# Adapters import their frameworks, which are not installed here; docs/frameworks describes them.
PUBLIC_MODULES = [
    "agentmark",
    "agentmark.elicit",
    "agentmark.elicit.calibration",
    "agentmark.elicit.prompts",
    "agentmark.report",
    "agentmark.testing",
    "agentmark.testing.provider",
    "agentmark.core",
]
HOME = "README.md"
PAGES = [HOME, "CHANGELOG.md", "CONTRIBUTING.md"]
PICTURES = "docs/figures"


def main() -> int:
    shutil.rmtree(SITE, ignore_errors=True)
    write_reference()
    write_pages()
    faults = [*missing_names(), *broken_links()]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"open {(SITE / 'index.html').relative_to(ROOT)}")
    return 1 if faults else 0


# The reference


def write_reference() -> None:
    # pdoc shows what a module holds. Names that `__getattr__` fetches when they are first used are put into it first.
    for module in map(import_module, PUBLIC_MODULES):
        for name in exported(module):
            setattr(module, name, getattr(module, name))
    footer = f"agentmark {agentmark.__version__}"
    pdoc.render.configure(docformat="markdown", template_directory=HERE, footer_text=footer)
    pdoc.pdoc(*PUBLIC_MODULES, output_directory=SITE / REFERENCE)


def exported(module: ModuleType) -> list[str]:
    return [name for name in getattr(module, "__all__", []) if name != "__version__"]


def missing_names() -> Iterator[str]:
    """Every name in the `__all__` of a public module has a section on its page."""
    for module in map(import_module, PUBLIC_MODULES):
        page = (SITE / REFERENCE / f"{module.__name__.replace('.', '/')}.html").read_text(encoding="utf-8")
        for name in exported(module):
            if f'<section id="{name}">' not in page:
                yield f"the reference lacks {module.__name__}.{name}"


# The pages


def write_pages() -> None:
    sources = [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md"))
    template = Environment(loader=FileSystemLoader(HERE), autoescape=True).get_template("page.html.jinja2")
    pages = {PurePosixPath(source.relative_to(ROOT)): source.read_text(encoding="utf-8") for source in sources}
    pages |= {folder / "index.md": listing for folder, listing in listings(pages).items()}
    for path, text in pages.items():
        body, title = rendered(text, path, set(pages))
        target = SITE / address(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        to_root = "../" * (len(path.parts) - 1)
        target.write_text(template.render(body=body, title=title, root=to_root), encoding="utf-8")
    shutil.copytree(ROOT / PICTURES, SITE / PICTURES, ignore=shutil.ignore_patterns("*.svg"))


def listings(pages: dict[PurePosixPath, str]) -> dict[PurePosixPath, str]:
    """A page for each folder that has no front page, since documents link to folders: its documents, by title."""
    found: dict[PurePosixPath, str] = {}
    for folder in sorted({path.parent for path in pages}):
        members = sorted([path for path in pages if path.parent == folder])
        if folder / HOME not in members:
            lines = [f"- [{title_of(pages[path])}]({path.name})" for path in members]
            found[folder] = "\n".join([f"# {folder.name}\n", *lines])
    return found


def title_of(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def address(path: PurePosixPath) -> PurePosixPath:
    """Where the page of a document is: README.md of the project is the first page."""
    return PurePosixPath("index.html") if path == PurePosixPath(HOME) else path.with_suffix(".html")


def rendered(text: str, path: PurePosixPath, pages: set[PurePosixPath]) -> tuple[str, str]:
    """The document as HTML, and its title."""
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(text)
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", slug(content.content))
    for token in tokens:
        if token.type == "inline":
            redirect(token.children or [], path, pages)
    return parser.renderer.render(tokens, parser.options, {}), title_of(text)


def slug(heading: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def redirect(tokens: list[Token], path: PurePosixPath, pages: set[PurePosixPath]) -> None:
    """Turn links between documents into links between pages. What is not on the site keeps its text alone."""
    hidden = False
    for token in tokens:
        if token.type == "link_open":
            target = on_the_site(str(token.attrs["href"]), path, pages)
            hidden = token.hidden = target is None
            token.attrs["href"] = target or ""
        elif token.type == "link_close":
            token.hidden = hidden


def on_the_site(link: str, path: PurePosixPath, pages: set[PurePosixPath]) -> str | None:
    target, mark, anchor = unquote(link).partition("#")
    if "://" in target or not target:
        return link
    steps: list[str] = []
    for part in (path.parent / target).parts:
        steps = steps[:-1] if part == ".." else [*steps, part]
    meant = PurePosixPath(*steps)
    if meant / "index.md" in pages:
        return f"{target}/index.html{mark}{anchor}"
    if meant in pages:
        return f"{PurePosixPath(target).parent / address(meant).name}{mark}{anchor}"
    return link if meant.is_relative_to(PICTURES) else None


def broken_links() -> Iterator[str]:
    """Links of the pages that lead to no file. (Those of the reference are pdoc's.)"""
    for page in sorted(SITE.rglob("*.html")):
        if page.is_relative_to(SITE / REFERENCE):
            continue
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / unquote(link)).exists():
                yield f"{page.relative_to(SITE)}: {link} leads nowhere"


if __name__ == "__main__":
    sys.exit(main())
