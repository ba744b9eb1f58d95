"""deploy/compose and deploy/systemd: services that reach only what they must, units and schedules that are taken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import DEPLOY, compose_command

COMPOSE = DEPLOY / "compose"
UNITS = DEPLOY / "systemd"
JOBS = ("shuffler", "aux-server", "analyzer")
ENVIRONMENT = {
    "CAMPAIGNS": "/campaigns",
    "REDACTED_CAMPAIGNS": "/redacted-campaigns",
    "ANALYZER_KEYS": "/analyzer-keys",
    "AUX_SERVER_KEYS": "/aux-server-keys",
    "AUX_SIGNER_KEYS": "/aux-signer-keys",
    "SHUFFLER_KEYS": "/shuffler-keys",
    "TRUSTED": "/trusted",
}


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    return found


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Return source and whether it can be written, by target."""
    found = {}
    for mount in service["volumes"]:
        source, target, *mode = re.sub(r"\$\{(\w+):\?[^}]*\}", r"\1", mount).split(":")
        found[target] = (source, mode != ["ro"])
    return found


def test_every_service_is_unprivileged_and_its_root_cannot_be_written() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.search(r":[\d.]+$", service["image"]), name
        assert not {"privileged", "pid", "ipc", "devices"} & set(service), name
        # One service gives volumes to the others' user, may do nothing else, and ends.
        assert (service["user"], service.get("cap_add")) == (
            ("0:0", ["CHOWN"]) if name == "volumes" else ("10001:10001", None)
        )
        assert not [one for one in service.get("environment", ()) if "KEY" in one or "SECRET" in one]


def test_only_the_collector_has_a_network_and_it_listens_to_this_machine_alone() -> None:
    for name, service in services().items():
        assert (service.get("network_mode") == "none") == (name != "collector")
    collector = services()["collector"]
    assert collector["networks"] == ["front"]
    assert [port.split(":")[0] for port in collector["ports"]] == ["127.0.0.1"]


STORE = "/var/lib/hushcount/store"
# Of each service: folder of the store, volume, whether it is written.
MOUNTED = {
    "collector": {("segments", "segments", True)},
    # Its retention deletes segments too.
    "shuffler": {("segments", "segments", True), ("batches", "batches", True), ("shuffled", "shuffled", True)},
    "shuffler-hand-on": {("shuffled", "shuffled", False)},
    "aux-server": {("shuffled", "to-aux-server", False), ("released", "released", True)},
    "aux-server-hand-on": {("released", "released", False)},
    "analyzer": {
        ("shuffled", "to-analyzer", False),
        ("released", "released-to-analyzer", False),
        ("found", "found", True),
        ("results", "results", True),
    },
}
HANDS = {
    "shuffler-hand-on": {"shuffled/discovery=/to-aux-server", "shuffled/reports=/to-analyzer"},
    "aux-server-hand-on": {"released/bins=/released-to-analyzer"},
}


@pytest.mark.parametrize("name", MOUNTED)
def test_a_service_writes_its_own_and_reads_what_is_handed_to_it(name: str) -> None:
    found = mounts(services()[name])
    store = {
        (target.removeprefix(f"{STORE}/"), source, mode)
        for target, (source, mode) in found.items()
        if target.startswith(STORE)
    }
    assert store == MOUNTED[name]
    keys = {"aux-server": ("AUX_SERVER_KEYS", False), "analyzer": ("ANALYZER_KEYS", False)}
    assert found.get("/keys") == keys.get(name)
    if name in JOBS:
        assert found["/var/lib/hushcount/state"] == (f"{name}-state", True)


def test_only_whom_clients_ask_and_who_reveals_values_has_the_hash_key() -> None:
    whole, redacted = ("CAMPAIGNS", False), ("REDACTED_CAMPAIGNS", False)
    given = {name: mounts(services()[name]).get("/campaigns") for name in MOUNTED}
    assert given == {
        "collector": whole,
        "shuffler": redacted,
        "shuffler-hand-on": None,
        "aux-server": redacted,
        "aux-server-hand-on": None,
        "analyzer": whole,
    }


@pytest.mark.parametrize("name", HANDS)
def test_each_recipient_has_a_volume_of_its_own(name: str) -> None:
    service = services()[name]
    assert service["entrypoint"] == ["python", "-m", "hand_on"]
    words = service["command"]
    hands = {words[index + 1] for index, word in enumerate(words) if word == "--hand"}
    assert hands == HANDS[name]
    found = mounts(service)
    assert set(words) & set(found) == {"/etc/hushcount/deployment.toml"}
    for hand in hands:
        target = hand.partition("=")[2]
        assert found[target] == (target.strip("/"), True)
        readers = {
            (reader, mode)
            for reader in JOBS
            for source, mode in mounts(services()[reader]).values()
            if source == target.strip("/")
        }
        assert readers == {("aux-server" if target == "/to-aux-server" else "analyzer", False)}


@pytest.mark.parametrize("party", JOBS)
def test_a_deployment_file_names_what_its_service_mounts(party: str) -> None:
    deployment = Deployment.read(COMPOSE / f"{party}.toml")
    assert deployment.file.parties == (party,)
    found = mounts(services()[party])
    assert deployment.store == STORE
    assert str(Path(deployment.state).parent) in found
    assert str(deployment.campaigns) in found
    if party == "shuffler":
        assert deployment.collector is not None
        assert deployment.collector.name in deployment.file.collectors
        assert deployment.collector.journal in mounts(services()["collector"])
        assert services()["collector"]["ports"] == [f"127.0.0.1:8080:{deployment.collector.port}"]
    else:
        assert str(deployment.keys) in found
        assert str(deployment.ledger).startswith("/var/lib/hushcount/state/")


def test_all_volumes_are_declared_and_given_to_the_user() -> None:
    declared = set(yaml.safe_load((COMPOSE / "compose.yaml").read_text())["volumes"])
    used = {source for service in services().values() for source, _ in mounts(service).values()}
    named = {source for source in used if re.fullmatch(r"[a-z-]+", source)}
    assert named == declared
    assert {source for source, _ in mounts(services()["volumes"]).values()} == declared
    assert set(mounts(services()["volumes"])) == set(services()["volumes"]["entrypoint"][2:])


def test_docker_compose_takes_the_file() -> None:
    command = [*compose_command(), "-f", str(COMPOSE / "compose.yaml"), "config", "--format", "json"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)  # noqa: S603  # reads a file
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)["services"]
    assert set(read) == set(services())
    bound = {
        mount["source"] for service in read.values() for mount in service["volumes"] if mount["type"] == "bind"
    } - {str(COMPOSE / f"{party}.toml") for party in JOBS}
    assert bound == set(ENVIRONMENT.values())


def test_units_are_hardened() -> None:
    for path in UNITS.glob("*.service"):
        lines = set(path.read_text().splitlines())
        wanted = {"User=hushcount", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes"}
        wanted |= {"CapabilityBoundingSet=", "StateDirectory=hushcount", "StateDirectoryMode=0700", "UMask=0077"}
        assert wanted <= lines, path.name
    assert "InaccessiblePaths=-/etc/hushcount/keys" in (UNITS / "hushcount-collect.service").read_text()
    assert "PrivateNetwork=yes" in (UNITS / "hushcount-run.service").read_text()


def test_compiled_loops_outlive_a_run_and_the_collector_writes_none() -> None:
    lines = (UNITS / "hushcount-run.service").read_text().splitlines()
    assert "PrivateTmp=yes" in lines
    assert "CacheDirectory=hushcount" in lines
    assert "Environment=NUMBA_CACHE_DIR=/var/cache/hushcount/numba" in lines
    collector = (UNITS / "hushcount-collect.service").read_text()
    assert "/var/cache" not in collector
    assert "ProtectSystem=strict" in collector
    assert "NUMBA_CACHE_DIR=/var/lib/hushcount/numba" in (UNITS / "crontab").read_text().splitlines()


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed: the units were NOT held against systemd's own reader")
    program = tmp_path / "hushcount"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for path in UNITS.glob("hushcount-*"):
        # The unit names where it is installed; the check wants a program there.
        text = path.read_text().replace("/opt/hushcount/.venv/bin/hushcount", str(program))
        (tmp_path / path.name).write_text(text)
    units = sorted(map(str, tmp_path.glob("hushcount-*")))
    assert len(units) == 4
    checked = subprocess.run([tool, "verify", *units], capture_output=True, text=True, check=False)  # noqa: S603
    assert checked.returncode == 0, checked.stderr
    said = [line for line in checked.stderr.splitlines() if "hushcount" in line]
    assert said == []


def test_cron_lines_have_five_times_a_user_and_a_command() -> None:
    lines = [line for line in (UNITS / "crontab").read_text().splitlines() if not re.match(r"#|[A-Z_]+=|$", line)]
    assert len(lines) == 2
    for line in lines:
        *times, user, command = line.split(None, 6)
        assert len(times) == 5
        assert all(re.fullmatch(r"[\d*/,-]+", time) for time in times)
        assert user == "hushcount"
        assert re.search(r"hushcount (run|status) --config \S+$", command)
