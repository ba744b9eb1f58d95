"""deploy/compose and deploy/systemd: services that reach only what they must, units and schedules that are taken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import DEPLOY, compose_command

COMPOSE = DEPLOY / "compose"
UNITS = DEPLOY / "systemd"
INSIDE = {"internal": True, "driver_opts": {"com.docker.network.bridge.inhibit_ipv4": "true"}}
"""A network without a way out, and without an address of the machine: by that an internal one reaches the machine."""
JOBS = ("shuffler", "aux-server", "analyzer")
GIVEN = (
    "campaigns",
    "redacted-campaigns",
    "analyzer-keys",
    "analyzer-signer-keys",
    "aux-server-keys",
    "aux-signer-keys",
    "shuffler-keys",
    "trusted",
)
"""What the operator puts beside compose.yaml."""


@cache
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    return found


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Return source and whether it can be written, by target."""
    found = {}
    for mount in service.get("volumes", ()):
        if isinstance(mount, dict):
            assert mount["bind"] == {"create_host_path": False}, "what is missing would be made, and empty"
            found[mount["target"]] = (mount["source"], not mount["read_only"])
        else:
            source, target, *mode = mount.split(":")
            found[target] = (source, mode != ["ro"])
    return found


def test_every_service_is_unprivileged_and_its_root_cannot_be_written() -> None:
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.search(r"^hushcount-[a-z-]+:\$\{VERSION:-[\d.]+\}$|:[\d.]+\}$", service["image"]), name
        assert not {"privileged", "pid", "ipc", "devices"} & set(service), name
        # One service gives volumes to the others' user, may do nothing else, and ends. The proxy's program wants a
        # capability in reach; as another user than root, and without new privileges, it does not get it.
        allowed = {"volumes": ("0:0", ["CHOWN"]), "proxy": ("10001:10001", ["NET_BIND_SERVICE"])}
        assert (service["user"], service.get("cap_add")) == allowed.get(name, ("10001:10001", None))
        assert "mem_limit" in service or name == "volumes", name
        assert not [one for one in service.get("environment", ()) if "KEY" in one or "SECRET" in one]


def test_only_the_proxy_is_called_from_outside_and_only_it_calls_the_collector() -> None:
    networks = {name: service.get("networks") for name, service in services().items()}
    for name, service in services().items():
        assert (service.get("network_mode") == "none") == (networks[name] is None), name
        assert ("ports" in service) == (name == "proxy"), name
    assert {name: found for name, found in networks.items() if found} == {
        "proxy": ["outside", "front"],
        "collector": ["front"],
    }
    assert services()["proxy"]["ports"] == ["${LISTEN:-127.0.0.1:8443}:8443"]
    declared = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["networks"]
    assert declared == {"outside": {}, "front": INSIDE}


STORE = "/var/lib/hushcount/store"
# Of each service: folder of the store, volume, whether it is written.
MOUNTED = {
    "collector": {("segments", "segments", True)},
    # Its retention deletes segments too.
    "shuffler": {
        ("segments", "segments", True),
        ("shuffled", "shuffled", True),
        ("stated/shuffler", "shuffler-stated", True),
        ("receipts", "shuffler-received", False),
    },
    "shuffler-hand-on": {
        ("shuffled", "shuffled", False),
        ("stated/shuffler", "shuffler-stated", False),
        ("receipts", "shuffler-received", True),
    },
    "aux-server": {
        ("released", "released", True),
        ("mixed", "mixed", True),
        ("stated/aux-server", "aux-server-stated", True),
        ("receipts/aux-server", "aux-server-receipts", True),
        ("receipts/analyzer", "aux-server-received", False),
    },
    "aux-server-hand-on": {
        ("released", "released", False),
        ("mixed", "mixed", False),
        ("stated/aux-server", "aux-server-stated", False),
        ("receipts/analyzer", "aux-server-received", True),
    },
    "analyzer": {
        ("found", "found", True),
        ("results", "results", True),
        ("estimates", "estimates", True),
        ("receipts/analyzer", "analyzer-receipts", True),
    },
}
HANDED = {
    "aux-server": {"/from-shuffler": "to-aux-server"},
    "analyzer": {"/from-shuffler": "to-analyzer", "/from-aux-server": "released-to-analyzer"},
}
"""What each party only reads: volumes that another one hands on to, by where they are mounted."""
HANDS = {
    "shuffler-hand-on": {
        "shuffled/discovery=/to-aux-server/shuffled",
        "shuffled/reports=/to-analyzer/shuffled",
        "stated=/to-aux-server/stated",
        "stated=/to-analyzer/stated",
    },
    "aux-server-hand-on": {
        "released/bins=/released-to-analyzer/released",
        "mixed/reports=/released-to-analyzer/mixed",
        "stated=/released-to-analyzer/stated",
    },
}
FETCHES = {
    "shuffler-hand-on": {"receipts/aux-server=/from-aux-server", "receipts/analyzer=/from-analyzer"},
    "aux-server-hand-on": {"receipts/analyzer=/from-analyzer"},
}


def test_a_service_writes_its_own_and_reads_what_is_handed_to_it(subtests: pytest.Subtests) -> None:
    for name, mounted in MOUNTED.items():
        with subtests.test(name=name):
            found = mounts(services()[name])
            store = {
                (target.removeprefix(f"{STORE}/"), source, mode)
                for target, (source, mode) in found.items()
                if target.startswith(STORE)
            }
            own = {(folder, f"{name}-{folder}", True) for folder in ("log", "attempts")} if name in JOBS else set()
            assert store == mounted | own
            given = {target: source for target, (source, _) in found.items() if target.startswith("/from-")}
            if name in JOBS:
                assert given == HANDED.get(name, {})
            assert not [target for target in given if found[target][1]], "what is another's is not written"
            keys = {"aux-server": ("./aux-server-keys", False), "analyzer": ("./analyzer-keys", False)}
            assert found.get("/keys") == keys.get(name)
            if name in JOBS:
                assert found["/var/lib/hushcount/state"] == (f"{name}-state", True)


def test_only_whom_clients_ask_and_who_reveals_values_has_the_hash_key() -> None:
    whole, redacted = ("./campaigns", False), ("./redacted-campaigns", False)
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
    assert service["entrypoint"][:3] == ["python", "-m", "hand_on"]
    # Its health is the age of what it touches.
    assert service["entrypoint"][-2:] == ["--looked", "/tmp/looked"]  # noqa: S108  # in the container
    assert "/tmp/looked" in service["healthcheck"]["test"][1]  # noqa: S108
    words = [*service["entrypoint"], *service["command"]]
    assert options(words, "--hand") == HANDS[name]
    found = mounts(service)
    # The image names its deployment file.
    assert "--config" not in words
    (named,) = re.findall(r"HUSHCOUNT_CONFIG=(\S+)", (DEPLOY / "images" / "party.Dockerfile").read_text())
    assert named in found
    for hand in HANDS[name]:
        what, _, where = hand.partition("=")
        volume = where.split("/")[1]
        assert found[f"/{volume}"] == (volume, True)
        (reader,) = {"to-aux-server", *HANDED["analyzer"].values()} & {volume}
        party = "aux-server" if reader == "to-aux-server" else "analyzer"
        readers = {
            (one, target, mode)
            for one in JOBS
            for target, (source, mode) in mounts(services()[one]).items()
            if source == volume
        }
        sender = name.removesuffix("-hand-on")
        mounted = f"/from-{sender}"
        assert readers == {(party, mounted, False)}
        # It looks there: for the output, or for what its party states.
        output = what.partition("/")[0]
        parts = (output, sender) if output == "stated" else (output,)
        place = where.replace(f"/{volume}", mounted, 1)
        expected = "/".join((place, *parts[1:]))
        assert Deployment.read(COMPOSE / f"{party}.toml").folder(*parts) == expected


def options(words: list[str], name: str) -> set[str]:
    """Return the values of an option that may be given several times."""
    return {words[index + 1] for index, word in enumerate(words) if word == name}


@pytest.mark.parametrize("name", FETCHES)
def test_receipts_are_fetched_from_where_their_party_alone_leaves_them(name: str) -> None:
    service, sender = services()[name], name.removesuffix("-hand-on")
    assert options(service["command"], "--fetch") == FETCHES[name]
    for fetch in FETCHES[name]:
        what, _, where = fetch.partition("=")
        party = what.partition("/")[2]
        source, written = mounts(service)[where]
        assert (source, written) == (f"{party}-receipts", False)
        writers = {one for one in services() if one != "volumes" and (source, True) in mounts(services()[one]).values()}
        assert writers == {party}
        own = Deployment.read(COMPOSE / f"{party}.toml")
        assert mounts(services()[party])[own.folder("receipts", party)] == (source, True)
        # They come to where the schedule looks, which cannot write there.
        looked = Deployment.read(COMPOSE / f"{sender}.toml").folder("receipts", party)
        for one, mode in ((name, True), (sender, False)):
            volumes = {target: given for target, given in mounts(services()[one]).items() if looked.startswith(target)}
            assert set(volumes.values()) == {(f"{sender}-received", mode)}


def test_a_deployment_file_names_what_its_service_mounts(subtests: pytest.Subtests) -> None:
    for party in JOBS:
        with subtests.test(party=party):
            deployment = Deployment.read(COMPOSE / f"{party}.toml")
            assert deployment.file.parties == (party,)
            found = mounts(services()[party])
            assert deployment.store == STORE
            assert str(deployment.campaigns) in found
            if party == "shuffler":
                assert deployment.collector is not None
                assert deployment.collector.name in deployment.file.collectors
                assert deployment.collector.journal in mounts(services()["collector"])
                for names_it in ((COMPOSE / "Caddyfile").read_text(), str(services()["collector"]["healthcheck"])):
                    assert f":{deployment.collector.port}" in names_it
            else:
                assert str(deployment.keys) in found
                assert str(deployment.ledger).startswith("/var/lib/hushcount/state/")


def test_all_volumes_are_declared_and_given_to_the_user() -> None:
    declared = set(yaml.safe_load((COMPOSE / "compose.yaml").read_text())["volumes"])
    used = {source for service in services().values() for source, _ in mounts(service).values()}
    named = {source for source in used if re.fullmatch(r"[a-z-]+", source)}
    assert named == declared
    assert {source for source, _ in mounts(services()["volumes"]).values()} == declared
    assert set(mounts(services()["volumes"])) == {f"/volumes/{name}" for name in declared}
    assert services()["volumes"]["entrypoint"] == ["sh", "-c", "chown 10001:10001 /volumes/*"]


def test_a_schedules_health_is_the_age_of_what_each_look_writes(subtests: pytest.Subtests) -> None:
    for party in JOBS:
        with subtests.test(party=party):
            metrics = Deployment.read(COMPOSE / f"{party}.toml").file.metrics
            assert metrics is not None
            job = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["x-job"]
            assert metrics.textfile in job["healthcheck"]["test"][1]


def test_the_proxy_takes_no_longer_body_than_the_collector() -> None:
    (kib,) = re.findall(r"max_size (\d+)MiB", (COMPOSE / "Caddyfile").read_text())
    collector = Deployment.read(COMPOSE / "shuffler.toml").collector
    assert collector is not None
    assert int(kib) << 20 == collector.most_body_bytes


def test_docker_compose_takes_the_file() -> None:
    command = [*compose_command(), "-f", str(COMPOSE / "compose.yaml"), "config", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # reads a file
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)["services"]
    assert set(read) == set(services())
    bound = {
        mount["source"] for service in read.values() for mount in service["volumes"] if mount["type"] == "bind"
    } - {str(path) for path in COMPOSE.iterdir()}
    assert bound == {str(COMPOSE / name) for name in GIVEN}


def test_units_are_hardened() -> None:
    for path in UNITS.glob("*.service"):
        lines = set(path.read_text().splitlines())
        wanted = {"User=hushcount", "NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes"}
        wanted |= {"CapabilityBoundingSet=", "StateDirectory=hushcount", "StateDirectoryMode=0700", "UMask=0077"}
        assert wanted <= lines, path.name
    assert "InaccessiblePaths=-/etc/hushcount/keys" in (UNITS / "hushcount-collect.service").read_text()
    assert "PrivateNetwork=yes" in (UNITS / "hushcount-run.service").read_text()


def test_no_service_may_dump_core() -> None:
    for unit in UNITS.glob("*.service"):
        assert "LimitCORE=0" in unit.read_text().splitlines(), unit.name
    for service, part in services().items():
        assert service == "volumes" or part["ulimits"] == {"core": 0}, service
    # Its tags are compose's own: the one service here that extends none takes what this file restricts.
    evaluator = (COMPOSE / "evaluator.yaml").read_text()
    assert "\n  ulimits: {core: 0}\n" in evaluator.partition("services:")[0]
    assert "  evaluator:\n    <<: *restricted\n" in evaluator


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
    assert len(units) == 5
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
