"""On a machine with a keyring, the key that encrypts tokens is there, and the data folder only says where."""

import stat
import sys

import keyring
import pytest

from file_keyring import FileKeyring
from guarantees import guarantee
from toolscout.errors import SettingError
from toolscout.settings import Settings
from toolscout.token_cipher import new_key
from toolscout.token_keys import TokenKeys

pytestmark = guarantee("signin:bound")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder without a key."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "toolscout"


@pytest.fixture
def ring(tmp_path, monkeypatch):
    """A keyring that this process uses."""
    monkeypatch.setenv("FILE_KEYRING", str(tmp_path / "keyring.json"))
    before, own = keyring.get_keyring(), FileKeyring()
    keyring.set_keyring(own)
    yield own
    keyring.set_keyring(before)


def keys():
    return TokenKeys(Settings(store="memory:"))


def test_the_key_is_in_the_keyring_and_the_file_says_where(folder, ring):
    sealed = keys().cipher().seal({"a": 1}, "here")
    ((place, key),) = ring.secrets().items()
    text = (folder / "token.key").read_text()
    assert text == f"keyring:{place.removeprefix('toolscout/')}\n"
    assert key not in text
    assert stat.S_IMODE((folder / "token.key").stat().st_mode) == 0o600
    assert keys().cipher().open(sealed, "here") == {"a": 1}


def test_of_two_processes_that_make_a_key_at_once_one_key_is_left(folder, ring):
    sealed = []

    class Slow(FileKeyring):
        """A keyring in which another process makes its key while ours is being stored."""

        def set_password(self, service, username, password):
            super().set_password(service, username, password)
            keyring.set_keyring(ring)
            sealed.append(keys().cipher().seal({"a": 1}, "here"))

    keyring.set_keyring(Slow())
    ours = keys()
    assert ours.cipher().open(sealed[0], "here") == {"a": 1}
    assert len(ring.secrets()) == 1


def test_a_new_key_moves_into_the_keyring_and_processes_that_run_see_it(folder, ring):
    folder.mkdir(parents=True)
    (folder / "token.key").write_text(new_key())
    (folder / "token.key").chmod(0o600)
    running, rotating = keys(), keys()
    before = running.cipher().seal({"a": 1}, "here")
    for _ in range(2):
        old = rotating.add_new()
        assert running.cipher().open(before, "here") == {"a": 1}
        after = running.cipher().seal({"a": 1}, "here")
        assert rotating.cipher().is_newest(after)
        rotating.remove(old)
        assert not running.cipher().knows(before)
        assert (folder / "token.key").read_text().startswith("keyring:")
        assert len(ring.secrets()) == 1
        before = after


def test_a_keyring_that_cannot_be_read_is_a_clear_error_and_no_new_key(folder, ring, monkeypatch):
    sealed = keys().cipher().seal({"a": 1}, "here")
    whole = ring.file.read_text()
    ring.file.write_text("locked")
    with pytest.raises(SettingError, match="cannot be read: KeyringLocked") as failed:
        keys().cipher()
    assert "unlock it" in failed.value.hint
    ring.file.write_text("{}")
    with pytest.raises(SettingError, match="it was deleted"):
        keys().cipher()
    ring.file.write_text(whole)
    assert keys().cipher().open(sealed, "here") == {"a": 1}
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(SettingError, match="the extra package is not installed"):
        keys().cipher()


def test_a_keyring_that_takes_nothing_leaves_the_key_in_the_file(folder, ring):
    ring.file.write_text("locked")
    sealed = keys().cipher().seal({"a": 1}, "here")
    assert not (folder / "token.key").read_text().startswith("keyring:")
    assert keys().cipher().open(sealed, "here") == {"a": 1}


def test_a_key_of_the_operator_never_comes_from_the_keyring(tmp_path, folder, ring):
    file = tmp_path / "operators.key"
    file.write_text("keyring:somewhere")
    file.chmod(0o600)
    with pytest.raises(SettingError, match="holds something that is not a key"):
        TokenKeys(Settings(store="memory:", token_key_file=str(file))).cipher()
    TokenKeys(Settings(store="memory:", token_key=new_key())).cipher()
    assert ring.secrets() == {}
