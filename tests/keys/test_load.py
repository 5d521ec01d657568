"""Any key that marks, from its file."""

import json
from pathlib import Path

import pytest

pytest.importorskip("nacl", reason="the extra `public` is not installed")

from agentmark.keys.errors import KeyFileError
from agentmark.keys.load import load_key
from agentmark.keys.marking import MarkingKey
from agentmark.keys.shared import SharedKey


def test_the_file_says_which_kind_of_key_it_holds(tmp_path: Path) -> None:
    shared, marking = SharedKey.generate(), MarkingKey.generate()
    shared.save(tmp_path / "shared.json")
    marking.save(tmp_path / "marking.json")
    assert load_key(tmp_path / "shared.json") == shared
    assert load_key(tmp_path / "marking.json") == marking


def test_a_shared_key_is_not_looked_for_in_files_of_the_other_kind(tmp_path: Path) -> None:
    key = MarkingKey.generate()
    key.save(tmp_path / "marking.json")
    with pytest.raises(KeyFileError, match=r"is a marking key.*MarkingKey\.load"):
        SharedKey.load(tmp_path / "marking.json")
    SharedKey.generate().save(tmp_path / "shared.json")
    with pytest.raises(KeyFileError, match="is not a marking key file"):
        MarkingKey.load(tmp_path / "shared.json")
    key.public.save(tmp_path / "marking.pub.json")
    (tmp_path / "marking.pub.json").chmod(0o600)
    with pytest.raises(KeyFileError, match="is a public key, which has no secret"):
        SharedKey.load(tmp_path / "marking.pub.json")


def test_a_public_key_is_none_to_mark_or_read_with(tmp_path: Path) -> None:
    MarkingKey.generate().public.save(tmp_path / "marking.pub.json")
    with pytest.raises(KeyFileError, match=r"marking\.pub\.json: is a public key"):
        load_key(tmp_path / "marking.pub.json")


@pytest.mark.parametrize("kind", [SharedKey, MarkingKey])
def test_files_that_others_can_read_are_refused(tmp_path: Path, kind: type[SharedKey | MarkingKey]) -> None:
    kind.generate().save(tmp_path / "key.json")
    (tmp_path / "key.json").chmod(0o644)
    with pytest.raises(KeyFileError, match="can be read by others"):
        load_key(tmp_path / "key.json")


@pytest.mark.parametrize("damage", [{"agentmark_marking_key": 2}, {"secret": "00"}, {"id": "0" * 32}])
def test_what_is_wrong_with_a_marking_key_file_is_said_without_its_secret(
    tmp_path: Path, damage: dict[str, object]
) -> None:
    path = tmp_path / "marking.json"
    MarkingKey.generate().save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | damage))
    with pytest.raises(KeyFileError) as caught:
        load_key(path)
    assert content["secret"] not in repr(caught.value)
