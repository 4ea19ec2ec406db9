"""Secrets that a config refers to: files, and the system's keyring. No message shows a value."""

from __future__ import annotations

from pathlib import Path

from toolscout.errors import ConfigError

FILE = "file:"
KEYRING = "keyring:"

_MAX_BYTES = 65_536


def is_secret(inner: str) -> bool:
    """Return whether the text between the braces of a reference names a secret."""
    return inner.startswith((FILE, KEYRING))


def read_secret(inner: str, folder: str, where: str) -> str:
    """Return the secret that a reference names. A relative path starts at `folder`."""
    if inner.startswith(FILE):
        return _from_file(Path(folder) / Path(inner.removeprefix(FILE)).expanduser(), where)
    return _from_keyring(inner.removeprefix(KEYRING), where)


def _from_file(path: Path, where: str) -> str:
    """Read a secret from a file. One line break at the end is removed, because editors and secret stores add it."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ConfigError(
                f"{where}: {path} is too large for a secret", hint="name a file that contains only the secret"
            )
        return data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise ConfigError(
            f"{where}: {path} cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: {path} is not UTF-8 text", hint="save the secret as UTF-8") from None


def _from_keyring(name: str, where: str) -> str:
    service, _, user = name.rpartition("/")
    if not service or not user:
        raise ConfigError(f"{where}: {name!r} is not a keyring entry", hint="write ${keyring:SERVICE/USER}")
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise ConfigError(
            f"{where}: reading a keyring needs an extra package", hint="pip install 'toolscout[keyring]'"
        ) from None
    try:
        secret = keyring.get_password(service, user)
    except KeyringError as error:
        raise ConfigError(
            f"{where}: the keyring cannot be read ({type(error).__name__})", hint="unlock it, or use a file"
        ) from None
    if secret is None:
        raise ConfigError(
            f"{where}: the keyring has no secret {service}/{user}", hint=f"add it with `keyring set {service} {user}`"
        )
    return str(secret)
