"""The keys that encrypt tokens at rest: read from the environment or a file, again when they change, and rotated.

On a machine with a keyring, the file in the data folder only says where in the keyring the key is. Every process looks
at that file, so it learns of a new key without asking the keyring, which may ask the person.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from toolscout.errors import SettingError
from toolscout.settings import PREFIX, Settings, data_folder
from toolscout.token_cipher import NEW_KEY_HINT, TokenCipher, new_key, parse_keys

_KEYRING = "keyring:"
_SERVICE = "toolscout"
_REAL_KEYRING = 1
_SHARED_STORES = ("postgres://", "postgresql://")


class TokenKeys:
    """The operator's keys, the newest first. A key in the data folder is made and rotated here."""

    def __init__(self, settings: Settings) -> None:
        """Read nothing yet: a scout without accounts needs no key."""
        self._settings = settings
        self._opened: tuple[object, TokenCipher] | None = None

    def cipher(self) -> TokenCipher:
        """Return the cipher with the keys as they are now. It may block for the time of reading a file.

        If the data folder has no key, one is made, but only at the first call: accounts may need a key that got lost.
        """
        file = self._file()
        if file is None:
            stamp: object = ()
        else:
            if self._opened is None and self._is_own and not file.exists():
                line = _add_key()
                try:
                    _write(file, [line])
                except FileExistsError:  # another process was first
                    _delete(line)
            stamp = _stamp(file)
        if self._opened is None or self._opened[0] != stamp:
            where = f"{PREFIX}TOKEN_KEY" if file is None else str(file)
            text = self._settings.token_key if file is None else _read(file)
            if file is not None and self._is_own:
                text = " ".join(_key_of(line, file) for line in text.split())
            self._opened = stamp, TokenCipher(parse_keys(text, where))
        return self._opened[1]

    def add_new(self) -> tuple[str, ...]:
        """Put a new key in front of those in the data folder, and return these. Other keys the operator changes."""
        self.cipher()
        file = self._file()
        if file is None or not self._is_own:
            return ()
        old = _read(file).split()
        _write(file, [_add_key(), *old], replace=True)
        return tuple(old)

    def remove(self, keys: Sequence[str]) -> None:
        """Remove keys from those in the data folder."""
        file = self._file()
        if keys and file is not None:
            _write(file, [key for key in _read(file).split() if key not in keys], replace=True)
            for key in keys:
                _delete(key)

    @property
    def _is_own(self) -> bool:
        return not self._settings.token_key_file

    def _file(self) -> Path | None:
        """Return the file that holds the keys, or None if they are in the environment."""
        settings = self._settings
        if settings.token_key:
            return None
        if settings.token_key_file:
            return Path(settings.token_key_file).expanduser()
        if settings.store_url.startswith(_SHARED_STORES):
            raise SettingError(
                f"{PREFIX}TOKEN_KEY is not set, and replicas cannot share a key in a data folder",
                hint=f"set it to the same key for every replica: {NEW_KEY_HINT}",
            )
        return data_folder() / "token.key"


def _add_key() -> str:
    """Make a key, and return its line: where it is in the system's keyring, or the key itself where there is none."""
    key, name = new_key(), secrets.token_hex(8)
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return key
    try:
        # What has a lower priority keeps secrets in a file as we do, or nowhere.
        if keyring.get_keyring().priority < _REAL_KEYRING:
            return key
        keyring.set_password(_SERVICE, name, key)
    except (KeyringError, RuntimeError):
        return key
    return f"{_KEYRING}{name}"


def _key_of(line: str, file: Path) -> str:
    """Return the key that a line of the file in the data folder stands for."""
    if not line.startswith(_KEYRING):
        return line
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise _not_in_keyring(file, "the extra package is not installed") from None
    try:
        key = keyring.get_password(_SERVICE, line.removeprefix(_KEYRING))
    except (KeyringError, RuntimeError) as error:
        raise _not_in_keyring(file, type(error).__name__) from None
    if key is None:
        raise _not_in_keyring(file, "it was deleted")
    return str(key)


def _delete(line: str) -> None:
    """Delete a key from the keyring, if it is there."""
    if line.startswith(_KEYRING):
        import keyring
        from keyring.errors import KeyringError

        with suppress(KeyringError, RuntimeError):
            keyring.delete_password(_SERVICE, line.removeprefix(_KEYRING))


def _not_in_keyring(file: Path, why: str) -> SettingError:
    return SettingError(
        f"the key of your accounts is in the system's keyring, which cannot be read: {why}",
        hint=f"unlock it, with `pip install 'toolscout[keyring]'`; or delete {file}, and sign in again",
    )


def _stamp(file: Path) -> object:
    """Return what differs when a file was written again. Refuse a file that other users can read."""
    try:
        status = file.stat()
    except OSError as error:
        raise _unreadable(file) from error
    if os.name == "posix" and status.st_mode & 0o077:
        raise SettingError(f"other users can read the key file {file}", hint=f"chmod 600 {file}")
    return status.st_ino, status.st_mtime_ns, status.st_size


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise _unreadable(file) from error


def _unreadable(file: Path) -> SettingError:
    return SettingError(f"the key file {file} cannot be read", hint="check the path and its permissions")


def _write(file: Path, keys: Sequence[str], *, replace: bool = False) -> None:
    """Write a key file that only its owner can read, at once and whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as stream:
        stream.write("".join(f"{key}\n" for key in keys))
    try:
        if replace:
            temporary.replace(file)
        else:
            file.hardlink_to(temporary)  # fails if another process was first
    finally:
        temporary.unlink(missing_ok=True)
