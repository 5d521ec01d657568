import pickle
from pathlib import Path

import pytest

from agentmark import SharedKey
from agentmark.errors import SettingError
from agentmark.keys.errors import KeyFileError
from agentmark.scale.audit import ClusterAudit
from agentmark.scale.worker_keys import CarriedKeys, KeyFiles, KeyVariables, keyring_of

KEY = SharedKey(bytes(range(100, 132)))
OTHER = SharedKey(bytes(range(7, 39)))


def test_files_are_read_where_the_keys_are_needed(tmp_path: Path) -> None:
    KEY.save(tmp_path / "a.json")
    OTHER.save(tmp_path / "b.json")
    sent = pickle.dumps(KeyFiles(tmp_path / "a.json", tmp_path / "b.json"))
    assert KEY._secret not in sent
    assert keyring_of(pickle.loads(sent)).ids == (KEY.id, OTHER.id)


def test_a_worker_without_the_file_says_which(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match=r"a\.json"):
        KeyFiles(tmp_path / "a.json").keys()


def test_variables_are_read_where_the_keys_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTMARK_KEY", KEY._secret.hex())
    sent = pickle.dumps(KeyVariables())
    assert KEY._secret not in sent
    assert pickle.loads(sent).keys() == [KEY]


def test_carried_keys_arrive_and_are_not_shown() -> None:
    carried = CarriedKeys([KEY, OTHER])
    arrived = pickle.loads(pickle.dumps(carried))
    assert tuple(arrived.keys()) == (KEY, OTHER)
    for shown in (repr(carried), str(arrived), f"{arrived!r}"):
        assert KEY.id in shown
        assert KEY._secret.hex() not in shown


def test_any_key_id_travels_along() -> None:
    arrived = pickle.loads(pickle.dumps(CarriedKeys(KEY, any_key_id=True)))
    assert keyring_of(arrived).check == keyring_of(CarriedKeys(KEY, any_key_id=True)).check
    assert keyring_of(arrived).check != keyring_of(CarriedKeys(KEY)).check


def test_a_bare_key_is_refused_with_what_to_write() -> None:
    with pytest.raises(SettingError, match=r"KeyFiles\(path\)"):
        ClusterAudit(keys=KEY)  # type: ignore[arg-type]
