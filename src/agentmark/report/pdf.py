"""A page as PDF, through the print of a browser that is installed. Nothing is fetched: the page loads nothing."""

import os
from pathlib import Path

from agentmark.core.errors import AgentMarkError

ENVIRONMENT_VARIABLE = "AGENTMARK_BROWSER"
# Chromium and what is made of it: they print without a window.
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
TIMEOUT_S = 120

_SETTINGS = (
    "--headless",
    "--disable-gpu",
    # A profile of its own, and nothing that a browser does on the side.
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--disable-quic",
    # No name is looked up, so that nothing can be fetched.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    # No date and address on every sheet; the second is how older browsers call it.
    "--no-pdf-header-footer",
    "--print-to-pdf-no-header",
)


class PdfError(AgentMarkError, RuntimeError):
    """A page that could not be printed. The page itself is none the worse."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"PDF: {fault}")
        self.fault = fault


def find_browser(named: str | None = None) -> str:
    """The browser to print with: the one named here or in the environment, else the first that is installed."""
    # These modules are imported where they are used: few commands print.
    import shutil

    named = named or os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise PdfError(f"{named} is not a program that can be run")
        return found
    for name in BROWSERS:
        found = shutil.which(name)
        if found is not None:
            return found
    raise PdfError(
        f"HTML only: no browser was found; open it and print. Looked for: {', '.join(BROWSERS)}. Name another with "
        f"--browser or {ENVIRONMENT_VARIABLE}"
    )


def print_to_pdf(page: str, *, browser: str | None = None) -> bytes:
    """The page as PDF. `browser` is what `find_browser` found."""
    import subprocess
    from tempfile import TemporaryDirectory

    browser = browser or find_browser()
    with TemporaryDirectory(prefix="agentmark-pdf-") as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        # As root a browser refuses to start in its sandbox. The page that it opens runs nothing.
        unconfined = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        profile = f"--user-data-dir={Path(folder, 'profile')}"
        command = [browser, *_SETTINGS, *unconfined, profile, f"--print-to-pdf={target}", source.as_uri()]
        try:
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise PdfError(f"{browser} did not print within {TIMEOUT_S} seconds") from None
        except OSError as error:
            raise PdfError(f"{browser} cannot be run: {error.strerror}") from None
        content = target.read_bytes() if target.is_file() else b""
    if not content.startswith(b"%PDF"):
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        raise PdfError(
            f"{browser} printed nothing (exit status {ran.returncode}): {said[-1] if said else 'no message'}"
        )
    return content
