"""`agentmark chain` and `agentmark signing-key`."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chained_logs import KEY
from log_shapes import SHAPES
from support import marked_log

from agentmark import ChainWriter, LogWriter
from agentmark.cli import main


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(tmp_path)
    KEY.save("key.json")

    def call(command: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        status = main(command.split())
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


EMBED = "embed --key key.json --payload 42 --payload-len 8 --log log.jsonl"
WEIGHTS = '{"Search": 0.4, "Book": 0.25, "Pay": 0.35}\n'


def test_from_a_signing_key_to_a_finding(run: Callable[..., tuple[int, str, str]]) -> None:
    status, out, _ = run("signing-key signing.json")
    assert status == 0
    public_key = out.split()[-1]
    for _ in range(2):
        status, _, err = run(f"{EMBED} --chain --signing-key signing.json", WEIGHTS * 30)
        assert (status, err) == (0, "")
    status, out, _ = run(f"chain log.jsonl --public-key {public_key}")
    assert status == 0
    assert out.startswith("Intact: 60 records of 2 sessions, all vouched for")
    anchor = next(line.split()[2] for line in out.splitlines() if "last checkpoint" in line)
    assert run(f"chain log.jsonl --public-key {public_key} --anchor {anchor}")[0] == 0
    assert "nobody vouches for this key" in run("chain log.jsonl")[1]
    lines = Path("log.jsonl").read_text().splitlines(keepends=True)
    Path("log.jsonl").write_text("".join(lines[:5] + lines[7:]) + lines[0][:30])
    status, out, err = run(f"chain log.jsonl --public-key {public_key}")
    assert status == 1
    assert "records are missing between line 5 (step 4) and line 6 (step 7), 2 by the count of a checkpoint" in out
    assert "log.jsonl:61: is cut short" in err
    status, out, _ = run("chain log.jsonl --json")
    report = json.loads(out)
    assert status == 1
    assert (report["intact"], report["torn_lines"], report["record_count"]) == (False, [61], 58)
    assert {finding["kind"] for finding in report["findings"]} == {"gap", "unchecked"}
    assert run("verify log.jsonl --key key.json")[0] == 0, "the mark is read all the same"


def test_a_broken_line_is_a_finding_and_a_file_of_nothing_else_is_bad_input(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    run(f"{EMBED} --chain", WEIGHTS * 3)
    status, out, _ = run("chain log.jsonl")
    assert status == 0
    assert "no checkpoint vouches for any record" in out
    with Path("log.jsonl").open("a") as file:
        file.write('{"agentmark":7}\n')
    status, out, _ = run("chain log.jsonl")
    assert status == 1
    assert "record log.jsonl:4: agentmark: found 7" in out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("chain none.jsonl", "none.jsonl: No such file"),
        ("chain key.json", "not an AgentMark step record"),
        ("chain log.jsonl --public-key abc", "is not a public key"),
        ("chain log.jsonl --anchor abc", "anchor"),
        ("signing-key key.json", "exists already"),
        (f"{EMBED} --signing-key none.json", "give --chain as well"),
        (f"{EMBED} --chain --former-key abc", "give --signing-key as well"),
        (f"{EMBED} --chain --signer-file state", "give --signing-key as well"),
        (f"{EMBED} --chain --signing-key none.json", "none.json: cannot be read"),
        ("embed --key key.json --payload 42 --payload-len 8 --chain", "give --log as well"),
    ],
)
def test_bad_input_is_exit_two(run: Callable[..., tuple[int, str, str]], command: str, message: str) -> None:
    run(f"{EMBED} --chain", WEIGHTS)
    status, _, err = run(command)
    assert status == 2
    assert message in err


def test_text_of_the_file_does_not_steer_the_terminal(run: Callable[..., tuple[int, str, str]]) -> None:
    """Colours, moves, bells, letters in reverse: names of sessions are whatever somebody wrote into the file."""
    evil = "\x1b[2J\x9b1m\u202e\u2066\u200f\u061c\u2028"
    records = [replace(record, session=evil + "0123456789") for record in marked_log(KEY, steps=4)]
    with LogWriter("log.jsonl", chain=ChainWriter()) as log:
        for record in records:
            log.write(record)
    lines = Path("log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    broken = json.dumps({"agentmark": evil}, ensure_ascii=False) + "\n"
    Path("log.jsonl").write_text(lines[0] + lines[3] + broken + '{"' + evil, encoding="utf-8")
    for command in ("chain log.jsonl", "chain log.jsonl --json"):
        status, out, err = run(command)
        assert status == 1
        assert all(character == "\n" or character.isprintable() for character in out + err)
        assert "\\u202e" in out
    assert json.loads(out)["findings"][0]["session"].startswith(evil)


def test_a_log_goes_on_under_a_new_key(run: Callable[..., tuple[int, str, str]]) -> None:
    first, second = (run(f"signing-key {name}.json")[1].split()[-1] for name in ("first", "second"))
    own = "--session s --first-step"
    assert run(f"{EMBED} --chain --signing-key first.json {own} 0", WEIGHTS * 3)[0] == 0
    assert run(f"{EMBED} --chain --signing-key second.json --former-key {first} {own} 3", WEIGHTS * 3)[0] == 0
    status, out, _ = run(f"chain log.jsonl --public-key {first} --public-key {second}")
    assert status == 0
    assert out.startswith("Intact: 6 records of 1 session, all vouched for")
    assert sorted(path.name for path in Path().glob("*.signer")) == sorted(
        f"log.jsonl.{key[:16]}.signer" for key in (first, second)
    )
    assert run(f"{EMBED} --chain --signing-key second.json --signer-file kept --former-key {first}", WEIGHTS)[0] == 0
    assert Path("kept").exists()


# Whatever `verify` reads.


def test_several_files_are_judged_each_by_itself(run: Callable[..., tuple[int, str, str]]) -> None:
    run(f"{EMBED} --chain", WEIGHTS * 3)
    Path("logs/deep").mkdir(parents=True)
    Path("log.jsonl").rename("logs/whole.jsonl")
    lines = Path("logs/whole.jsonl").read_text().splitlines(keepends=True)
    Path("logs/deep/cut.jsonl.gz").write_bytes(gzip.compress("".join([lines[0], lines[2]]).encode()))
    status, out, _ = run("chain logs")
    assert status == 1
    assert "logs/deep/cut.jsonl.gz\nNot intact: 2 records of 1 session; found 1 gap" in out
    assert "logs/whole.jsonl\nIntact: 3 records of 1 session" in out
    reports = json.loads(run("chain logs --json")[1])
    assert [(report["log"], report["intact"]) for report in reports] == [
        ("logs/deep/cut.jsonl.gz", False),
        ("logs/whole.jsonl", True),
    ]
    assert run("chain logs/whole.jsonl")[0] == 0


def test_links_in_another_format_are_checked(run: Callable[..., tuple[int, str, str]]) -> None:
    run(f"{EMBED} --chain", WEIGHTS * 5)
    lines = Path("log.jsonl").read_text().splitlines()
    Path("traces.json").write_bytes(SHAPES["otlp document"][0](lines))
    status, out, _ = run("chain traces.json")
    assert status == 0
    assert "Intact: 5 records of 1 session" in out
    assert "OTLP/JSON, which keeps links and no checkpoints" in out
    Path("traces.json").write_bytes(SHAPES["otlp document"][0](lines[:2] + lines[3:]))
    assert run("chain traces.json")[0] == 1


def test_a_format_without_a_chain_says_why(run: Callable[..., tuple[int, str, str]]) -> None:
    run(EMBED, WEIGHTS * 5)
    Path("traces.json").write_bytes(SHAPES["otlp document"][0](Path("log.jsonl").read_text().splitlines()))
    status, out, _ = run("chain traces.json")
    assert status == 3
    assert "traces.json has no chain: OTLP/JSON with 5 records, none of them linked." in out
    assert "hand in that file" in out
    # Where somebody is known to have signed it, that is a finding.
    public_key = run("signing-key signing.json")[1].split()[-1]
    status, out, _ = run(f"chain traces.json --public-key {public_key}")
    assert status == 1
    assert "unsigned" in out


def test_a_file_that_is_no_log_among_logs(run: Callable[..., tuple[int, str, str]]) -> None:
    run(f"{EMBED} --chain", WEIGHTS * 3)
    Path("scan.pdf").write_bytes(b"%PDF-1.7\n")
    assert run("chain log.jsonl scan.pdf")[0] == 2
    status, out, _ = run("chain log.jsonl scan.pdf --skip-bad")
    assert status == 0
    assert "scan.pdf is no log: not recognised: this is a file that begins with b'%PDF-1.7" in out
