"""Every deployment of deploy/ signs what is handed on, checks what was, and gives each key to one party."""

from __future__ import annotations

import base64
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from keys.directories import active_key, create
from keys.roles import Role, SigningRole
from pipelines.deployment.settings import Deployment
from pipelines.handover.parties import signer_of
from pipelines.handover.statements import keys_of
from tests.deploy.conftest import DEPLOY, SIGNERS
from tests.deploy.manifests import PARTIES, Resource, pods, resources
from tests.deploy.test_documented import README
from tests.deploy.test_images import recipe
from tests.deploy.test_schedules import JOBS, mounts, services

TRUSTED: Mapping[str, tuple[SigningRole, ...]] = {
    "shuffler": ("aux_signer", "analyzer_signer"),
    "aux-server": ("shuffler", "analyzer_signer"),
    "analyzer": ("shuffler", "aux_signer"),
}
OPENING: Mapping[str, Role] = {"aux-server": "aux_server", "analyzer": "analyzer"}
PUBLIC: Mapping[str, str] = {"shuffler": "shuffler", "aux_signer": "aux-server", "analyzer_signer": "analyzer"}
"""In which folder of what a party trusts the public keys of a role lie."""
DIRECTORIES: Mapping[SigningRole, str] = {
    "shuffler": "shuffler-keys",
    "aux_signer": "aux-signer-keys",
    "analyzer_signer": "analyzer-signer-keys",
}


def deployment(folder: str, party: str, directory: Path) -> Deployment:
    """Return a party's deployment file of a folder of deploy/."""
    if folder != "kubernetes":
        return Deployment.read(DEPLOY / folder / f"{party}.toml")
    (found,) = resources(party, "ConfigMap")
    (directory / "deployment.toml").write_text(found["data"]["deployment.toml"])
    return Deployment.read(directory / "deployment.toml")


def public(made: Deployment) -> dict[SigningRole, Path | None]:
    """Return where a deployment file says that the public keys of each role are."""
    return {"shuffler": made.shuffler_keys, "aux_signer": made.aux_server_keys, "analyzer_signer": made.analyzer_keys}


def test_who_hands_on_signs_and_who_reads_knows_whom_to_trust(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for folder in ("compose", "kubernetes", "dataflow"):
        for party in PARTIES:
            with subtests.test(folder=folder, party=party):
                here = tmp_path / f"{folder}-{party}"
                here.mkdir()
                made = deployment(folder, party, here)
                assert made.sign_with is not None
                # A key has one purpose.
                assert made.sign_with != made.keys
                given = public(made)
                assert tuple(role for role, path in given.items() if path is not None) == TRUSTED[party]
                for role, path in given.items():
                    assert path is None or path.parts[-3:] == ("trusted", PUBLIC[role], "public.json")


def test_compose_gives_each_key_to_the_service_that_uses_it_and_to_no_other(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for party in JOBS:
        with subtests.test(party=party):
            here = tmp_path / party
            here.mkdir()
            made = deployment("compose", party, here)
            found = mounts(services()[party])
            assert found["/signing-keys"] == (f"./{DIRECTORIES[SIGNERS[party]]}", False)
            assert str(made.sign_with) == "/signing-keys"
            assert found["/trusted"] == ("./trusted", False)
            for path in public(made).values():
                assert path is None or str(path).startswith("/trusted/")
            for name, service in services().items():
                if name not in JOBS:
                    assert not {"/keys", "/signing-keys", "/trusted"} & set(mounts(service)), name


def test_only_the_image_that_signs_holds_what_signs() -> None:
    """The collector, who is called from outside, and who copies files have no code that knows a key."""
    images = {name: service["image"].partition(":")[0] for name, service in services().items()}
    assert {name for name, image in images.items() if image == "hushcount-shuffler-signing"} == {"shuffler"}
    for name in ("collector", "shuffler-hand-on"):
        assert images[name] == "hushcount-shuffler"
    signing = {
        (name, container["name"])
        for name, template in pods("shuffler")
        for container in template["spec"]["containers"]
        if "/hushcount-shuffler-signing:" in container.get("image", "")
    }
    assert signing == {("run", "run")}
    assert "--target shuffler-signing -t hushcount-shuffler-signing:0.1.0 ." in README


def commands(party: str, kind: str) -> list[list[str]]:
    """Return the README's commands that make a Secret or a ConfigMap in a party's namespace."""
    begin = f"kubectl -n hushcount-{party} create {kind} "
    return [shlex.split(line) for line in README.splitlines() if line.startswith(begin)]


def made_by(words: list[str], directory: Path) -> Resource:
    """Run a command of the README that makes a resource, without a cluster, on the keys of a directory."""
    named = [re.sub(r"ID\.key$", f"{_id(directory, word)}.key", word) for word in words]
    done = subprocess.run(  # noqa: S603  # the README's own words
        [*named, "--dry-run=client", "--output=yaml"], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    resource: Resource = yaml.safe_load(done.stdout)
    return resource


def _id(directory: Path, word: str) -> str:
    match = re.search(r"=([\w/-]+-)ID\.key$", word)
    if match is None:
        return ""
    (path,) = directory.glob(f"{match[1]}*.key")
    return path.stem.rpartition("-")[2]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The key directories that the README makes, and what is trusted beside them."""
    roles: dict[str, Role] = {
        "analyzer-keys": "analyzer",
        "aux-server-keys": "aux_server",
        "aux-signer-keys": "aux_signer",
        "shuffler-keys": "shuffler",
        "analyzer-signer-keys": "analyzer_signer",
    }
    for name, role in roles.items():
        create(tmp_path / name, 365, [role])
    for role, name in DIRECTORIES.items():
        folder = PUBLIC[role]
        (tmp_path / "trusted" / folder).mkdir(parents=True)
        (tmp_path / "trusted" / folder / "public.json").write_bytes((tmp_path / name / "public.json").read_bytes())
    return tmp_path


def holders(party: str, kind: str) -> dict[str, set[tuple[str, str, str]]]:
    """Return pod, container and variable or mount, by the Secret or ConfigMap that is given there."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for name, template in pods(party):
        volumes = {one["name"]: one[kind] for one in template["spec"].get("volumes", ()) if kind in one}
        for container in template["spec"]["containers"]:
            mounted = [one for one in container["volumeMounts"] if one["name"] in volumes]
            given = [(volumes[one["name"]], one["mountPath"]) for one in mounted]
            if kind == "secret":
                references = [(one.get("valueFrom", {}), one["name"]) for one in container.get("env", ())]
                given += [(one["secretKeyRef"], variable) for one, variable in references if one]
            for reference, place in given:
                found.setdefault(reference["name"], set()).add((name, container["name"], place))
    return found


@pytest.mark.parametrize("party", PARTIES)
def test_the_documented_secrets_are_those_of_the_pods_and_the_run_alone_signs(
    party: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {one["metadata"]["name"]: one for one in (made_by(words, keys) for words in commands(party, "secret"))}
    given = holders(party, "secret")
    assert set(made) == set(given)
    assert given["signing-key"] == {("run", "run", "HUSHCOUNT_SIGNING_KEYS")}
    for name, variable, role in (
        ("signing-key", "HUSHCOUNT_SIGNING_KEYS", SIGNERS.get(party)),
        ("key", "HUSHCOUNT_KEYS", OPENING.get(party)),
    ):
        assert (name in made) == (role is not None)
        if role is not None:
            content = base64.b64decode(made[name]["data"]["keys"]).decode()
            assert re.findall(r'"role": "(\w+)"', content) == [role]
            monkeypatch.setenv(variable, content)
    source = deployment("kubernetes", party, keys).sign_with
    assert source == "env:HUSHCOUNT_SIGNING_KEYS"
    assert signer_of(source, SIGNERS[party]) == active_key(str(source), SIGNERS[party])


@pytest.mark.parametrize("party", PARTIES)
def test_the_documented_public_keys_are_where_the_run_looks_for_them(party: str, keys: Path) -> None:
    given = holders(party, "configMap")
    assert given["trusted"] == {("run", "run", "/trusted")}
    (words,) = commands(party, "configmap")
    data: dict[str, str] = made_by(words, keys)["data"]
    items: list[dict[str, Any]] = next(
        volume["configMap"]["items"]
        for name, template in pods(party)
        if name == "run"
        for volume in template["spec"]["volumes"]
        if volume["name"] == "trusted"
    )
    assert set(data) == {one["key"] for one in items}
    # As a pod has them, under another root.
    for one in items:
        path = keys / "pod" / "trusted" / one["path"]
        path.parent.mkdir(parents=True)
        path.write_text(data[one["key"]])
    found = deployment("kubernetes", party, keys)
    assert tuple(role for role, path in public(found).items() if path is not None) == TRUSTED[party]
    for role, path in public(found).items():
        if path is None:
            continue
        assert str(path).startswith("/trusted/")
        held = keys / "pod" / path.relative_to("/")
        assert held.read_bytes() == (keys / DIRECTORIES[role] / "public.json").read_bytes()


def test_dataflows_workers_get_no_key_that_signs(tmp_path: Path) -> None:
    """A worker opens by what is in its image, or by its account; only where `hushcount run` is called is signed."""
    for party in SIGNERS:
        made = deployment("dataflow", party, tmp_path)
        secret = f"gcp-secret://projects/example-{party}/secrets/hushcount-signing/versions/latest"
        assert made.sign_with == secret
        assert "signing" not in "".join(made.file.engine.options)
    assert keys_of(deployment("dataflow", "shuffler", tmp_path), "shuffler") == ()
    # Their image is made from the party's.
    assert "COPY keys " not in (DEPLOY / "dataflow" / "Dockerfile").read_text()
    assert "COPY keys " not in recipe("shuffler")
    assert "COPY keys " in recipe("shuffler-signing")


def test_no_server_can_come_to_a_key_of_others_by_its_unit() -> None:
    others = "InaccessiblePaths=-/etc/hushcount/keys -/etc/hushcount/signing-keys"
    units = DEPLOY / "systemd"
    collector = (units / "hushcount-collect.service").read_text().splitlines()
    assert f"{others} -/etc/hushcount/evaluator-keys -/etc/hushcount/passes" in collector
    for server, further in (("evaluate", "passes"), ("issue", "evaluator-keys")):
        assert f"{others} -/etc/hushcount/{further}" in (units / f"hushcount-{server}.service").read_text().splitlines()


def test_the_volumes_of_what_is_trusted_lie_apart_from_what_is_handed_on() -> None:
    """Who can write between two parties must not write there too."""
    for service in services().values():
        assert all(not writable for target, (_, writable) in mounts(service).items() if target == "/trusted")
