"""on_flink_in_containers.py, as far as it can be looked at without a Docker engine: what Flink's own image is given."""

from __future__ import annotations

from typing import Any

import yaml

from tests.deploy.conftest import DEPLOY
from tests.deploy.on_flink_in_containers import NAME, flink

ROLES = ("jobmanager", "taskmanager")


def manifest() -> dict[str, Any]:
    """Return Flink's settings in the Kubernetes manifests."""
    text = (DEPLOY / "kubernetes" / "engine" / "flink.yaml").read_text(encoding="utf-8")
    settings: dict[str, Any] = next(yaml.safe_load_all(text))["spec"]["flinkConfiguration"]
    return settings


def given(role: str) -> dict[str, str]:
    """Return the variables that a container gets."""
    options = [word.removeprefix("--env=") for word in flink("one", role) if word.startswith("--env=")]
    return {name: value for name, _, value in (option.partition("=") for option in options)}


def settings(properties: str) -> dict[str, str]:
    """Return what the image's entry point makes of FLINK_PROPERTIES: of each line it removes all white space."""
    lines = ("".join(line.split()).partition(":") for line in properties.splitlines())
    return {name: value for name, _, value in lines}


def test_the_entry_point_leaves_every_setting_what_it_is() -> None:
    wanted = {name: value for name, value in manifest().items() if name.startswith(("taskmanager.", "restart-"))}
    assert len(wanted) >= 7
    # A duration is one with a space and without.
    assert wanted["restart-strategy.fixed-delay.delay"] == "10 s"
    wanted |= {"restart-strategy.fixed-delay.delay": "10s", "jobmanager.rpc.address": f"{NAME}-jm"}
    for role in ROLES:
        assert settings(given(role)["FLINK_PROPERTIES"]) == wanted


def test_javas_options_come_whole_by_a_variable_of_their_own() -> None:
    options = manifest()["env.java.opts.all"].split()
    assert len(options) >= 10
    for role in ROLES:
        assert given(role)["FLINK_ENV_JAVA_OPTS"].split() == options


def test_flinks_image_runs_as_its_own_user_and_reads_nothing_of_the_party() -> None:
    for role in ROLES:
        command = flink("one", role)
        assert not [word for word in command if word.startswith(("--user", "-u", "--volume", "-v", "--mount"))]
        assert command[-1] == role
