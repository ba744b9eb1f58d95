"""What the distributions must agree on, and what no lock file may name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hushcount import __version__

ROOT = Path(__file__).parents[2]


def lines(name: str) -> list[str]:
    return (ROOT / name).read_text(encoding="utf-8").splitlines()


def test_client_and_parties_are_of_one_version_and_the_parties_ask_for_it() -> None:
    parties, client = lines("pyproject.toml"), lines("hushcount/pyproject.toml")
    assert f'version = "{__version__}"' in parties
    assert [line for line in parties if "hushcount[" in line] == [f'    "hushcount[oblivious]=={__version__}",']
    # The client's own is read from where it is imported from.
    assert 'dynamic = ["version"]' in client
    assert client[client.index("[tool.hatch.version]") + 1] == 'path = "__init__.py"'
    assert not [line for line in client if line.startswith("version =")]


def test_the_client_is_for_one_python_more_than_the_others_under_the_same_licence() -> None:
    ranges = [next(line for line in lines(name) if line.startswith("requires-python = ")) for name in FILES]
    assert ranges == [f'requires-python = ">=3.10,<3.{below}"' for below in (15, 15, 16)]
    assert len({next(line for line in lines(name) if line.startswith("license = ")) for name in FILES}) == 1
    assert lines("LICENSE") == lines("hushcount/LICENSE") == lines("sealed_lanes/LICENSE")


@pytest.mark.parametrize(
    "name",
    [
        "requirements.lock",
        "requirements-dev.lock",
        "tests/package/client.lock",
        "deploy/images/gcp.lock",
        "deploy/images/aws.lock",
    ],
)
def test_a_lock_holds_what_an_index_has_and_nothing_of_ours(name: str) -> None:
    assert not [line for line in lines(name) if re.match(r"-e|\.|file:|hushcount|sealed", line)]


FILES = ("pyproject.toml", "sealed_lanes/pyproject.toml", "hushcount/pyproject.toml")
