"""What every page that we write begins with, and how text of others stands on it. No script, no network."""

from base64 import b64encode
from hashlib import sha256
from html import escape

from agentmark.text import JOINERS, spelled_out


def opening(title: str, style: str) -> str:
    """The beginning of a page up to its content, with a policy that lets it load nothing and run nothing.

    The one style sheet is let in by its hash. Style attributes draw bars of a given width; they can load nothing.
    """
    digest = b64encode(sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = (
        # Browsers that do not know the two finer rules go by the first.
        f"default-src 'none'; style-src 'unsafe-inline'; style-src-elem 'sha256-{digest}'; "
        "style-src-attr 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv=Content-Security-Policy content="{policy}">\n'
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>"
    )


def isolated(text: str, limit: int | None = None) -> str:
    """Text that was read, safe on a page: cut, escaped, and isolated, so that its direction ends with it."""
    if limit is not None and len(text) > limit:
        head = 2 * limit // 3
        text = f"{text[:head]}…{text[len(text) - (limit - head - 1) :]}"
    return f"<bdi>{escape(spelled_out(text, keep=JOINERS))}</bdi>"
