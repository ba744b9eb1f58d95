"""deploy/hand_on.py by one user of a machine for another: real users, told apart by groups."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.deployment.settings import Deployment
from pipelines.handover.statements import keys_of
from pipelines.handover.upstream import read_upstream
from tests.deploy.conftest import signing_keys
from tests.deploy.handing_on import deployment, hands, shuffled
from tests.support.collecting import collect
from tests.support.site import Site, values

SHUFFLER, ANALYZER, STRANGER = 10_001, 10_002, 10_003
SHARED, OTHERS = 20_001, 20_002
"""Groups: of both parties, and of which the shuffler is no member."""

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can be other users: that users of one machine are kept apart was NOT tried"
)


def as_user(user: int, groups: list[int], step: Callable[[], Any]) -> Any:
    """Return what a step returns, or the name of the error that it raises, in a process of that user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.setgroups(groups)
            os.setgid(user)
            os.setuid(user)
            os.umask(0)
            answer = step()
        except BaseException as error:
            answer = type(error).__name__
        os.write(writing, pickle.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = pickle.loads(stream.read())  # noqa: S301  # our own child's
    os.waitpid(child, 0)
    return answer


def give(path: Path, user: int, group: int, mode: int) -> None:
    os.chown(path, user, group)
    path.chmod(mode)


@pytest.fixture
def site() -> Iterator[Site]:
    """Where all users may come to, as they may not in pytest's own directory."""
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        site = Site(Path(root))
        signing_keys(site.root)
        collect(site.store, site.campaign, values(100), day=0)
        (site.root / "campaigns").rename(site.root / "redacted-campaigns")
        yield site


def owned(site: Site, group: int) -> tuple[Deployment, Path, Path]:
    """Return the shuffler's deployment and batch, which its user owns, and a folder that it shares with a group."""
    shuffler, batch = shuffled(site)
    for path in (site.root / "own", *(site.root / "own").rglob("*")):
        os.chown(path, SHUFFLER, SHUFFLER)
    to = site.root / "to"
    to.mkdir()
    give(to, SHUFFLER, group, 0o2750)
    return shuffler, batch, to


def test_a_recipient_of_the_group_reads_its_copy_and_nobody_changes_it(hand_on: ModuleType, site: Site) -> None:
    shuffler, batch, to = owned(site, SHARED)
    asked = hands(hand_on, f"shuffled/reports={to}")
    handed = as_user(SHUFFLER, [SHARED], lambda: hand_on.hand_on(shuffler, asked))
    assert handed == ([f"handed on: words/{batch.name} reports"], [])
    copy = to / "words" / batch.name
    block = next(copy.rglob("*.blocks"))
    path = next((site.root / "redacted-campaigns").rglob("epoch-000001.json"))
    campaign = Campaign.read(path)
    keys = keys_of(deployment(site.root, "analyzer", "redacted-campaigns"), "shuffler")

    def accepted() -> Any:
        return read_upstream(str(copy), "shuffle", campaign, keys, "reports").accepted_of("reports")

    assert as_user(ANALYZER, [SHARED], accepted) == 100
    for forbidden in (block.unlink, lambda: block.write_bytes(b""), lambda: (copy / "added").write_bytes(b"")):
        assert as_user(ANALYZER, [SHARED], forbidden) == "PermissionError"
    assert as_user(ANALYZER, [SHARED], lambda: list((site.root / "own").iterdir())) == "PermissionError"
    assert as_user(STRANGER, [], lambda: list(to.iterdir())) == "PermissionError"
    assert as_user(SHUFFLER, [SHARED], lambda: hand_on.hand_on(shuffler, asked)) == ([], [])


def test_who_is_no_member_of_the_group_is_told_so_and_hands_on_nothing(hand_on: ModuleType, site: Site) -> None:
    """The system drops the bit by which the group would read, and says nothing: the copy was there for nobody."""
    shuffler, batch, to = owned(site, OTHERS)
    asked = hands(hand_on, f"shuffled/reports={to}")
    for _ in range(2):
        done, (problem,) = as_user(SHUFFLER, [SHARED], lambda: hand_on.hand_on(shuffler, asked))
        assert done == []
        said = f"{to} shares with group {OTHERS}, but user {SHUFFLER}, who writes there, is not a member of the group"
        assert said in problem
        assert list(to.iterdir()) == []
    handed = as_user(SHUFFLER, [OTHERS], lambda: hand_on.hand_on(shuffler, asked))
    assert handed == ([f"handed on: words/{batch.name} reports"], [])
