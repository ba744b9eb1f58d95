"""The systemd units of a deployment: the units in the folder systemd, with the deployment's paths and user."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from grp import getgrgid
from importlib.resources import files
from pathlib import Path

from hushcount.errors import UsageError

_HOMES = ("/home", "/root", "/run/user")
"""Directories that ProtectHome=yes hides."""
_STATE = ("StateDirectory", "StateDirectoryMode")


@dataclass(frozen=True)
class User:
    """The user that the services run as."""

    name: str
    group: str
    uid: int
    gid: int

    @property
    def is_caller(self) -> bool:
        """Whether the present process runs as this user."""
        return self.uid == os.geteuid()


def service_user(name: str | None) -> User:
    """Return the user of a name; if it is None, the user of this process.

    Raises:
        UsageError: no user has the name, or only root could give files to the user.
    """
    try:
        entry = pwd.getpwuid(os.geteuid()) if name is None else pwd.getpwnam(name)
        user = User(entry.pw_name, getgrgid(entry.pw_gid).gr_name, entry.pw_uid, entry.pw_gid)
    except (KeyError, ValueError):
        raise UsageError(
            f"user is {name or os.geteuid()!r}, must be a user of this machine: sudo useradd --system NAME makes one"
        ) from None
    if not user.is_caller and os.geteuid() != 0:
        raise UsageError(f"user is {name!r}, must be you: only root can give files to another user")
    return user


def program() -> tuple[str, ...]:
    """Return the words with which a service runs hushcount; the first word is an absolute path."""
    beside = Path(sys.executable).with_name("hushcount")
    return (str(beside),) if beside.exists() else (sys.executable, "-m", "pipelines")


def units(directory: Path, user: User) -> dict[str, str]:
    """Return the text of each unit by name of the unit; `directory` is the absolute path of the deployment."""
    keys = [directory / name for name in ("keys", "operator-keys")]
    config, words = directory / "deployment.toml", program()
    # Test sys.base_prefix too, because a virtual environment may use a Python below another user's home.
    at_home = any(_is_below_home(path) for path in (directory, Path(words[0]), Path(sys.base_prefix)))
    common: dict[str, str | None] = {"User": user.name, "Group": user.group, **dict.fromkeys(_STATE)}
    if at_home:
        common["ProtectHome"] = "read-only"
    collect = {
        "ExecStart": _command(*words, "collect", "--config", str(config)),
        "InaccessiblePaths": _paths("-", *keys),
        "ReadWritePaths": _paths("", directory / "journal", directory / "store"),
    }
    run = {
        "ExecStart": _command(*words, "run", "--config", str(config)),
        "InaccessiblePaths": None,
        "ReadWritePaths": _paths("", directory),
        "ReadOnlyPaths": _paths("", *keys),
    }
    changed: dict[str, Mapping[str, str | None]] = {
        "hushcount-collect.service": {**common, **collect},
        "hushcount-run.service": {**common, **run},
        "hushcount-run.timer": {},
    }
    shipped = files(__package__) / "systemd"
    return {name: _changed((shipped / name).read_text(), settings) for name, settings in changed.items()}


def _changed(text: str, settings: Mapping[str, str | None]) -> str:
    """Return a unit's text with new values of some settings; None removes a setting and the comment above it.

    Settings that the text lacks are added below the setting Group.
    """
    lines: list[str] = []
    missing = {name: value for name, value in settings.items() if value and f"\n{name}=" not in text}
    for line in text.splitlines():
        name = line.partition("=")[0]
        if name not in settings:
            lines.append(line)
            continue
        value = settings[name]
        if value is not None:
            lines.append(f"{name}={value}")
        else:
            while lines[-1].startswith("#"):
                lines.pop()
        if name == "Group":
            lines += [f"{new}={given}" for new, given in missing.items()]
    return "".join(f"{line}\n" for line in lines)


def _is_below_home(path: Path) -> bool:
    return any(path.is_relative_to(home) for home in _HOMES)


def _command(*words: str) -> str:
    return " ".join(_quoted(word.replace("$", "$$")) for word in words)


def _paths(before: str, *paths: Path) -> str:
    return " ".join(_quoted(f"{before}{path}") for path in paths)


def _quoted(word: str) -> str:
    """Return a word for a systemd unit, in which %, quotes and backslashes are special, quoted if necessary."""
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{safe}"' if not all(letter.isalnum() or letter in "/._-=%+:@$" for letter in safe) else safe
