"""How to check a report: every command that is printed is run in a shell, as it is printed."""

import os
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from reports import KEY, SIGNER, TENANTS, report_on, write_log
from support import marked_log

from agentmark.cli import main
from agentmark.report import SignedFile, render_report, report_digest
from agentmark.report.checking import COMMANDS_SHOWN, checking_section
from agentmark.report.provenance import InputFile

# What a shell, a terminal or a page could take for something else.
NAMES = (
    "log.jsonl",
    "a log.jsonl",
    "-dash.jsonl",
    "it's $HOME `id` & <b>.jsonl",
    "back\\slash.jsonl",
    "line\nfeed.jsonl",
    "\u202eturned\x1b[31m.jsonl",
    "日本語 👩\u200d👧.jsonl",
)


class Blocks(HTMLParser):
    """The text of every <pre>, as somebody copies it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._inside = True
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks[-1] += data


def pasted(block: str) -> subprocess.CompletedProcess[str]:
    """Run a block in bash, with the `agentmark` of this environment."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("AGENTMARK_KEY", None)
    return subprocess.run(["bash", "-c", block], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_works_as_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")
    TENANTS.save("registry.jsonl")
    SIGNER.save("signing.json")
    write_log("whole.jsonl", marked_log(KEY, steps=40))
    Path(name).write_bytes(Path("whole.jsonl").read_bytes() + b'{"agentmark":7}\n')
    asked = ("--key", "key.json", "--registry", "registry.jsonl", "--skip-bad")
    signing = ("--signed", f"signed {name}.json", "--signing-key", "signing.json")
    path = f"./{name}" if name.startswith("-") else name
    assert main(["verify", path, *asked, "--report", "page.html", *signing]) == 0
    blocks = Blocks(Path("page.html").read_text(encoding="utf-8")).blocks
    digests, signature, passed_over, again = blocks[:4]

    ran = pasted(digests)
    assert ran.returncode == 0, ran.stderr
    promised = [line.removeprefix("# must print ") for line in digests.splitlines() if line.startswith("#")]
    # sha256sum begins a line with a backslash if it had to escape the name.
    assert [line.lstrip("\\").split()[0] for line in ran.stdout.splitlines()] == promised
    assert len(promised) == 2

    ran = pasted(signature)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"Signed by {SIGNER.public_key}.")

    ran = pasted(passed_over)
    assert ran.returncode == 0, ran.stderr
    assert "found 7, this build reads version 1" in ran.stdout

    ran = pasted(again)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Attributed to 'acme-eu'")


def test_a_page_without_a_signature_says_so() -> None:
    report = report_on(marked_log(KEY, steps=9))
    section = checking_section(report, None)
    assert "came without a signature" in section
    assert report_digest(report) in section
    assert "check-report" not in section
    signed = checking_section(report, SignedFile(name="signed.json", public_key=SIGNER.public_key))
    assert f"agentmark check-report signed.json --public-key {SIGNER.public_key}" in signed
    assert report_digest(report) in signed


def test_the_commands_of_many_files_are_as_many_as_a_page_holds() -> None:
    files = [InputFile(kind="log", path=f"{i}.jsonl", size=1, sha256="00" * 32) for i in range(COMMANDS_SHOWN + 2)]
    files.append(InputFile(kind="log", path="/dev/stdin", size=None, sha256=None))
    section = checking_section(report_on(marked_log(KEY, steps=9), provenance={"inputs": files}), None)
    assert section.count("sha256sum ") == COMMANDS_SHOWN
    assert "2 further files: the same command" in section
    assert "/dev/stdin" not in section


def test_a_command_is_not_cut_where_some_hundred_files_are_named() -> None:
    command = f"agentmark verify {' '.join(f'folder/part-{i:04}.jsonl' for i in range(500))} --key key.json"
    report = report_on(marked_log(KEY, steps=9), provenance={"command": command})
    assert command in unescape(render_report(report))
