"""deploy/kubernetes: how campaign files come in, how pods come to the store, and what each party may read there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from hushcount.errors import UsageError
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment
from tests.deploy.conftest import DEPLOY
from tests.deploy.manifests import (
    FOLDER,
    PARTIES,
    Resource,
    kustomized,
    pods,
    rendered,
    resources,
    resources_of,
    schema_faults,
    templates,
)
from tests.deploy.test_schedules import options, services

README = (DEPLOY / "README.md").read_text(encoding="utf-8")
CONFIG = "/etc/hushcount/"
(IMAGES_CONFIG,) = set(re.findall(r"HUSHCOUNT_CONFIG=(\S+)", (DEPLOY / "images" / "party.Dockerfile").read_text()))
"""What the images' programs read without --config."""


def pod(party: str, wanted: str) -> Resource:
    (found,) = [template for name, template in pods(party) if name == wanted]
    return found


def written(template: Resource) -> dict[str, str]:
    """Return the claims that a pod's first container may write to, by where they are mounted."""
    claims = {one["name"]: one.get("persistentVolumeClaim", {}).get("claimName") for one in template["spec"]["volumes"]}
    mounts = template["spec"]["containers"][0]["volumeMounts"]
    return {
        mount["mountPath"]: claims[mount["name"]]
        for mount in mounts
        if claims.get(mount["name"]) and not mount.get("readOnly")
    }


def config(party: str, file: str, directory: Path) -> Deployment:
    """Return a deployment file as a pod finds it."""
    data = {
        name: text
        for one in resources(party, "ConfigMap")
        for name, text in one["data"].items()
        if one["metadata"]["name"].startswith("deployment")
    }
    path = directory / file
    path.write_text(data[file])
    return Deployment.read(path)


def publishing() -> dict[str, dict[str, str]]:
    """Return which campaign file the README publishes under which deployment file, by party."""
    found: dict[str, dict[str, str]] = {}
    for line in README.splitlines():
        words = shlex.split(line) if "exec job/publish --" in line and "campaign publish" in line else []
        if words:
            party = words[2].removeprefix("hushcount-")
            command = words[words.index("--") + 1 :]
            assert command[:3] == ["hushcount", "campaign", "publish"]
            options = dict(zip(command[3::2], command[4::2], strict=True))
            config = options.get("--config", f"{CONFIG}deployment.toml")
            found.setdefault(party, {})[config.removeprefix(CONFIG)] = options["--campaign"]
    return found


def test_the_documented_way_of_a_campaign_file_ends_where_schedule_and_collector_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="campaign"):
        read_epochs(tmp_path)
    commands = publishing()
    assert commands == {
        "analyzer": {"deployment.toml": "campaign.json"},
        "shuffler": {"deployment.toml": "redacted.json", "collector.toml": "campaign.json"},
    }
    for party in PARTIES:
        assert "Do the same at the auxiliary server, with `redacted.json`." in README
        template = pod(party, "publish")
        claims = written(template)
        for file in commands.get(party, {"deployment.toml": "redacted.json"}):
            campaigns = str(config(party, file, tmp_path).campaigns)
            reader = pod(party, "front" if file == "collector.toml" else "run")
            args = reader["spec"]["containers"][0]["args"]
            # Without the option the image names the file.
            assert (args[args.index("--config") + 1] if "--config" in args else IMAGES_CONFIG) == f"{CONFIG}{file}"
            volume = {mount["mountPath"]: mount["name"] for mount in reader["spec"]["containers"][0]["volumeMounts"]}
            read = {one["name"]: one for one in reader["spec"]["volumes"]}[volume[campaigns]]
            assert read["persistentVolumeClaim"]["claimName"] == claims[campaigns]


def test_publishing_waits_to_be_asked_and_reaches_nothing(subtests: pytest.Subtests) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            (schedule,) = [one for one in resources(party, "CronJob") if one["metadata"]["name"] == "publish"]
            assert schedule["spec"]["suspend"] is True
            template = pod(party, "publish")
            assert "hushcount/reaches" not in template["metadata"]["labels"]
            (container,) = template["spec"]["containers"]
            assert container["command"] == ["sleep", "3600"]
            assert container["workingDir"] == "/tmp"  # noqa: S108  # where the README's tar unpacks
            assert {"kubectl -n hushcount-analyzer create job publish --from=cronjob/publish"} <= set(
                README.splitlines()
            )


def test_the_collectors_file_is_of_the_schedules_store_and_windows(tmp_path: Path) -> None:
    schedule, collector = (config("shuffler", f"{one}.toml", tmp_path) for one in ("deployment", "collector"))
    assert schedule.collector is None
    assert collector.collector is not None
    assert collector.collector.name in schedule.file.collectors
    assert (collector.store, collector.windows) == (schedule.store, schedule.windows)
    assert "segments" not in {**schedule.file.paths, **collector.file.paths}
    assert collector.campaigns != schedule.campaigns
    ports = {port["port"] for one in resources("shuffler", "Service") for port in one["spec"]["ports"]}
    assert collector.collector.port in ports
    mounts = pod("shuffler", "front")["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "journal", "mountPath": collector.collector.journal} in mounts


def test_compiled_loops_lie_in_a_volume_that_only_the_schedule_writes(subtests: pytest.Subtests) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            (container,) = pod(party, "run")["spec"]["containers"]
            (where,) = [one["value"] for one in container["env"] if one["name"] == "NUMBA_CACHE_DIR"]
            assert str(Path(where).parent) in written(pod(party, "run"))
            others = [name for name, template in pods(party) if "state" in str(template["spec"]["volumes"])]
            assert others == ["run"]


def given(party: str, option: str) -> list[tuple[str, str]]:
    """Return what a party hands on or fetches, and where, as its manifests say."""
    if party == "analyzer":
        return []
    (container,) = pod(party, "hand-on")["spec"]["containers"]
    assert container["command"][:3] == services()[f"{party}-hand-on"]["entrypoint"][:3]
    assert {one for one in container["args"] if one.startswith("--")} == {"--hand", "--fetch"}
    pairs = [one.partition("=") for one in options(container["args"], option)]
    return sorted((what, where) for what, _, where in pairs)


@pytest.mark.parametrize("folder", ["kubernetes", "dataflow"])
def test_each_party_reads_only_what_was_handed_to_it_and_has_the_rights_that_it_needs(
    folder: str, tmp_path: Path
) -> None:
    stores, reads, writes, left = {}, {}, {}, {}
    for party in PARTIES:
        path = DEPLOY / "dataflow" / f"{party}.toml"
        deployment = Deployment.read(path) if folder == "dataflow" else config(party, "deployment.toml", tmp_path)
        stores[party] = bucket(deployment.store)
        reads[party] = {name: where for name, where in deployment.file.paths.items() if bucket(where) != stores[party]}
        # Its receipts, which others may read, are in a bucket of its own.
        left[party] = reads[party].pop(f"receipts/{party}", "")
        writes[party] = {stores[party], *(bucket(where) for where in (left[party], *places(party)) if where)}
    shuffler, aux_server = "gs://example-shuffler-to", "gs://example-aux-server-to"
    assert reads == {
        "shuffler": {},
        "aux-server": {
            "shuffled": f"{shuffler}-aux-server/shuffled",
            "stated/shuffler": f"{shuffler}-aux-server/stated/shuffler",
        },
        "analyzer": {
            "shuffled": f"{shuffler}-analyzer/shuffled",
            "released": f"{aux_server}-analyzer/released",
            "mixed": f"{aux_server}-analyzer/mixed",
            "stated/shuffler": f"{shuffler}-analyzer/stated/shuffler",
            "stated/aux-server": f"{aux_server}-analyzer/stated/aux-server",
        },
    }
    assert {party: given(party, "--hand") for party in PARTIES} == {
        "shuffler": [
            ("shuffled/discovery", f"{shuffler}-aux-server/shuffled"),
            ("shuffled/reports", f"{shuffler}-analyzer/shuffled"),
            ("stated", f"{shuffler}-analyzer/stated"),
            ("stated", f"{shuffler}-aux-server/stated"),
        ],
        "aux-server": [
            ("mixed/reports", f"{aux_server}-analyzer/mixed"),
            ("released/bins", f"{aux_server}-analyzer/released"),
            ("stated", f"{aux_server}-analyzer/stated"),
        ],
        "analyzer": [],
    }
    assert {party: given(party, "--fetch") for party in PARTIES} == {
        "shuffler": [(f"receipts/{party}", left[party]) for party in ("analyzer", "aux-server")],
        "aux-server": [("receipts/analyzer", left["analyzer"])],
        "analyzer": [],
    }
    told = re.findall(r"^\| `(shuffler|aux-server|analyzer)` \| (.*?) \|(.*)\|$", README, re.MULTILINE)
    rights = {party: tuple(set(re.findall(r"`([\w-]+)`", cell)) for cell in cells) for party, *cells in told}
    fetched = {party: [where for _, where in given(party, "--fetch")] for party in PARTIES}
    assert rights == {
        party: (writes[party], {bucket(where) for where in (*reads[party].values(), *fetched[party])})
        for party in PARTIES
    }


def places(party: str) -> list[str]:
    return [where for _, where in given(party, "--hand")]


def bucket(path: str) -> str:
    return path.split("/")[2]


def with_component(party: str, component: str, directory: Path) -> str:
    """Render a party with a component added as its kustomization.yaml says."""
    copy = shutil.copytree(FOLDER, directory / "kubernetes")
    file = copy / party / "kustomization.yaml"
    text = file.read_text()
    assert f"../{component}" in text, "named where it is to be added"
    file.write_text(re.sub(r"^components: \[(.*)\]$", rf"components: [\1, ../{component}]", text, flags=re.MULTILINE))
    file.write_text(file.read_text().replace("[, ", "["))
    return kustomized(copy / party)


@pytest.mark.parametrize("component", ["workload-identity", "store-credential"])
@pytest.mark.parametrize("party", PARTIES)
def test_kubernetes_own_schemas_take_a_component(party: str, component: str, tmp_path: Path) -> None:
    assert schema_faults(with_component(party, component, tmp_path), tmp_path) == ""


def test_with_workload_identity_who_reads_the_store_and_nobody_else_reaches_the_metadata_server(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            here = tmp_path / party
            here.mkdir()
            found = resources_of(with_component(party, "workload-identity", here))
            (policy,) = [one for one in found if one not in resources(party)]
            assert (policy["kind"], policy["metadata"]["namespace"]) == ("NetworkPolicy", f"hushcount-{party}")
            assert policy["spec"]["podSelector"] == {"matchLabels": {"hushcount/reaches": "store"}}
            ways = {
                (rule["to"][0]["ipBlock"]["cidr"], rule["ports"][0]["port"])
                for rule in policy["spec"]["egress"]
                if rule["to"]
            }
            assert ways == {("169.254.169.252/32", 988), ("169.254.169.254/32", 80)}
            # Without the component both addresses are closed.
            assert "169.254.0.0/16" in rendered(party)
            assert "169.254.169" not in rendered(party)
            assert [one["metadata"]["name"] for one in found if one["kind"] == "ServiceAccount"] == ["hushcount"]
            assert "/subject/ns/hushcount-analyzer/sa/hushcount" in README


def test_with_a_credential_the_containers_that_use_the_store_and_no_others_have_it(
    subtests: pytest.Subtests, tmp_path: Path
) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            here = tmp_path / party
            here.mkdir()
            found = resources_of(with_component(party, "store-credential", here))
            (settings,) = [one for one in found if one["metadata"]["name"] == "store-credential"]
            (where,) = settings["data"].values()
            holders = set()
            for one in found:
                for name, template in templates(one):
                    volumes = {volume["name"] for volume in template["spec"].get("volumes", ()) if "secret" in volume}
                    for container in template["spec"]["containers"]:
                        mounts = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in volumes}
                        named = [source["configMapRef"]["name"] for source in container.get("envFrom", ())]
                        assert (mounts, named) in ((set(), []), ({str(Path(where).parent)}, ["store-credential"]))
                        holders |= {(name, container["name"])} if mounts else set()
            opening = {("run", "run"), ("flink-taskmanager", "python-workers")}
            handing = set() if party == "analyzer" else {("hand-on", "hand-on")}
            assert holders == opening | handing | ({("front", "collector")} if party == "shuffler" else set())
            # The party's own key is still there.
            kept = yaml.safe_dump_all(found).count("name: HUSHCOUNT_KEYS")
            assert kept == (0 if party == "shuffler" else 2)
