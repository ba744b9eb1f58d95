"""Write all files of a deployment into a new directory, or after an error none of them."""

from __future__ import annotations

import fcntl
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import signature_path
from hushcount.clock import MACHINE
from hushcount.delivery.site import Site
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from hushcount.oracles.parameters import Parameters
from hushcount.policy import terms_of
from keys import directories, vouching
from keys.roles import OPENING_ROLES
from pipelines.commands.init.planned import Budget, Spans, budget_for
from pipelines.commands.init.texts import app_text, deployment_text, site_of
from pipelines.commands.init.units import User, units
from pipelines.commands.init.wizard import Answers
from pipelines.deployment.listed_windows import windows_of
from pipelines.deployment.publish import publish
from pipelines.deployment.settings import Deployment
from pipelines.jobs.new_campaign import create_campaign
from pipelines.ledger.overview import set_limit

_DAYS = 365
_PRIVATE = 0o077


@dataclass(frozen=True)
class Place:
    """The directory, the address and the user of the services.

    Attributes:
        directory: directory of the deployment, an absolute path.
        host, port: address on which the collector listens.
        user: user that the services run as.
    """

    directory: Path
    host: str
    port: int
    user: User

    @property
    def site(self) -> str:
        """The collector's address for a client on this machine."""
        return site_of(self.host, self.port)

    @property
    def is_near(self) -> bool:
        """Whether only this machine reaches the collector's address, so that clients accept plain http."""
        try:
            Site(self.site)
        except UsageError:
            return False
        return True


@dataclass(frozen=True)
class Choice:
    """The planned mechanism with its parameters, and the fewest reports in a release."""

    mechanism: str
    parameters: Parameters
    minimum_batch: int


def require_new(directory: Path) -> None:
    """Check that a directory can be made, or is empty.

    Raises:
        UsageError: the directory's name has characters that a unit cannot hold, or the directory exists and is not
            empty, or its parent does not exist.
    """
    if not str(directory).isprintable():
        raise UsageError(f"directory is {str(directory)!r}, must have a name of printable characters")
    if not directory.parent.is_dir():
        raise UsageError(f"directory is {directory}, but {directory.parent} is not a directory: make it first")
    if os.path.lexists(directory) and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"directory is {directory}, must be missing or empty: give another name")


def write(place: Place, answers: Answers, choice: Choice, test_value: str | float) -> tuple[Campaign, Budget]:
    """Write all files of a deployment, publish its first epoch, and set the limit of its ledger.

    The directory gets its name only after all files are written. After an exception, or a signal that can be caught, no
    file is left. If the process is killed, the next `hushcount init` for the directory removes the killed process'
    files. Only the services' user can read the directory.

    Returns:
        The campaign, and the budget of its ledger.

    Raises:
        UsageError: the directory cannot be written, or somebody else put files into it during the call.
    """
    # The called functions create files that everybody may read; this mask makes the files private.
    mask = os.umask(_PRIVATE)
    try:
        with _whole(place.directory) as partial:
            made = _written(partial, place, answers, choice, test_value)
            if not place.user.is_caller:
                for path in (partial, *partial.rglob("*")):
                    os.chown(path, place.user.uid, place.user.gid)
            return made
    finally:
        os.umask(mask)


def _written(
    folder: Path, place: Place, answers: Answers, choice: Choice, test_value: str | float
) -> tuple[Campaign, Budget]:
    # Without discovery nothing is sealed to an auxiliary server.
    directories.create(folder / "keys", _DAYS, ("analyzer",) if answers.discovery is None else OPENING_ROLES)
    directories.create(folder / "operator-keys", _DAYS, ("operator",))
    path, spans = folder / "campaign.json", Spans.of(answers.tiling)
    discovery = {"epsilon": answers.discovery, "delta": answers.delta, "counts": True}
    campaign = create_campaign(
        answers.id,
        directories.read_public([folder / "keys"]),
        folder,
        mechanism=choice.mechanism,
        epsilon=answers.epsilon,
        dictionary=answers.values.dictionary,
        number=answers.values.number,
        settings=choice.parameters,
        shuffle={"minimum_batch": choice.minimum_batch, "delta": answers.delta},
        discovery=None if answers.discovery is None else discovery,
        windows=windows_of(answers.tiling, MACHINE.now()),
    )
    campaign.write(path)
    signature = vouching.sign_campaign(directories.active_key(folder / "operator-keys", "operator"), campaign)
    budget = budget_for(campaign, answers.window)
    operator = directories.verify_keys(folder / "operator-keys", "operator")
    texts = {
        signature_path(path).name: signature.text(),
        "policy.json": terms_of(campaign, operator, answers.values.known).text(),
        "deployment.toml": deployment_text(
            answers.id, spans, place.host, place.port, listed=answers.values.known is not None
        ),
        ".gitignore": "# Keys and reports do not belong into a repository. To add a file: git add --force FILE\n*\n",
        "app.py": app_text(place.site if place.is_near else f"https://{place.host}", test_value, answers.window),
        **{f"systemd/{name}": text for name, text in units(place.directory, place.user).items()},
    }
    # systemd lets a service write to these directories only if they exist when the service starts.
    for name in ("systemd", "store", "journal"):
        (folder / name).mkdir()
    for name, text in texts.items():
        write_new(folder / name, text, 0o644)
    publish(Deployment.read(folder / "deployment.toml"), path)
    set_limit(folder / "ledger.db", campaign.id, budget.epsilon, budget.delta, budget.renew_days)
    return campaign, budget


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Yield a hidden directory beside `target`; if the block ends without an exception, rename it to `target`."""
    try:
        _sweep(target)
        partial, descriptor = _locked(target)
    except OSError as error:
        raise UsageError(f"cannot make {target} in {target.parent}: {error.strerror}") from None
    try:
        yield partial
        try:
            # The rename fails, and changes nothing, if somebody has put files into the target.
            os.rename(partial, target)
        except OSError as error:
            raise UsageError(f"cannot make {target}: {error.strerror}; nothing was written") from None
    finally:
        os.close(descriptor)
        shutil.rmtree(partial, ignore_errors=True)


def _locked(target: Path) -> tuple[Path, int]:
    """Make a hidden directory beside `target` and lock it; `_sweep` of another process removes unlocked directories."""
    while True:
        partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}.init")
        partial.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            descriptor = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Another process may have removed the directory before it was locked: then make another one.
            if partial.exists():
                return partial, descriptor
            os.close(descriptor)


def _sweep(target: Path) -> None:
    """Remove the hidden directories of killed processes for the same target, because they hold unused keys."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.init"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
            finally:
                os.close(descriptor)
