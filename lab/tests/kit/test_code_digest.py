"""Which code played: what an episode is made of changes the digest, and what only sums up does not."""

from pathlib import Path

import pytest
from agentmark_lab.envs.base import module_of
from agentmark_lab.kit import code_digest as module
from agentmark_lab.kit.campaign import playing_code
from agentmark_lab.kit.code_digest import code_behind, code_digest


def test_policy_loop_and_environment_are_what_plays() -> None:
    behind = code_behind(["agentmark_lab.kit.episodes", module_of("bfcl")])
    needed = ["agentmark.policies.red_green", "agentmark.policies.early_stopping", "agentmark.core.scheme_r"]
    needed += ["agentmark_lab.kit.agent_loop", "agentmark_lab.kit.expert_agent", "agentmark_lab.envs.script"]
    assert {*needed} <= behind.keys()
    for other in ("agentmark_lab.kit.equivalence", "agentmark_lab.report", "agentmark_lab.envs.alfworld"):
        assert other not in behind


def test_any_change_in_it_is_another_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "agentmark"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "loop.py").write_text("def play():\n    from agentmark.policy import choose\n")
    (package / "policy.py").write_text("choose = 1\n")
    (package / "report.py").write_text("from agentmark import loop\n")
    found = []
    for name, text in [("", ""), ("report.py", "x = 1\n"), ("policy.py", "choose = 2\n"), ("loop.py", "import os\n")]:
        if name:
            (package / name).write_text(text)
        fake = type("Package", (), {"__file__": str(package / "__init__.py")})
        monkeypatch.setattr(module, "_PACKAGES", {"agentmark": fake})
        found.append(code_digest(["agentmark.loop"]))
    assert found[0] == found[1]
    assert len({*found}) == 3


def test_tasks_that_were_brought_are_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "q.json"
    file.write_text("[]")
    first = playing_code("toolbench-own", tmp_path)
    file.write_text("[1]")
    assert len({playing_code("toolbench"), first, playing_code("toolbench-own", tmp_path)}) == 3
