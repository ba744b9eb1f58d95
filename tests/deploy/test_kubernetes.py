"""deploy/kubernetes, as kustomize renders it: parties apart, all closed that is not named, nothing privileged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.deployment.settings import Deployment
from pipelines.files.beam_options import unknown_options
from tests.deploy.manifests import EVERYONE, PARTIES, Resource, containers, pods, rendered, resources, schema_faults

VOLUMES = ("emptyDir", "configMap", "persistentVolumeClaim")
NAMESPACE = "kubernetes.io/metadata.name"


def labels(template: Resource) -> dict[str, str]:
    found: dict[str, str] = template["metadata"]["labels"]
    return found


def selects(selector: Resource, found: dict[str, str]) -> bool:
    return all(found.get(name) == value for name, value in selector.get("matchLabels", {}).items())


def test_all_of_a_party_is_in_its_own_namespace_which_refuses_privileged_pods(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            (namespace,) = resources(party, "Namespace")
            assert namespace["metadata"]["name"] == f"hushcount-{party}"
            for mode in ("enforce", "audit", "warn"):
                assert namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"] == "restricted"
            others = [one for one in resources(party) if one["kind"] != "Namespace"]
            assert {one["metadata"]["namespace"] for one in others} == {f"hushcount-{party}"}
            assert {one["kind"] for one in others} >= {"CronJob", "NetworkPolicy", "ServiceAccount"}


def test_every_pod_is_restricted(subtests: pytest.Subtests) -> None:
    """What the level `restricted` asks for, and a root file system that cannot be written."""
    for party in EVERYONE:
        with subtests.test(party=party):
            seen = 0
            for name, template in pods(party):
                spec = template["spec"]
                assert spec.get("automountServiceAccountToken") is False, name
                assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
                assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
                # A Secret's files can be read by a group: only what copies the evaluator's keys has them.
                others = ("secret",) if name == "evaluator" else ()
                assert all(set(volume) <= {"name", *VOLUMES, *others} for volume in spec["volumes"])
                for container in containers(template):
                    own = {**spec["securityContext"], **container["securityContext"]}
                    assert own["runAsNonRoot"] is True, name
                    assert own["runAsUser"] > 0, name
                    assert own["allowPrivilegeEscalation"] is False, name
                    assert own["readOnlyRootFilesystem"] is True, name
                    assert own["capabilities"] == {"drop": ["ALL"]}, name
                    mounts = {mount["name"] for mount in container["volumeMounts"]}
                    claimed = {one["metadata"]["name"] for one in claims(party, name)}
                    assert mounts <= {volume["name"] for volume in spec["volumes"]} | claimed, name
                    seen += 1
            assert seen >= (3 if party == "evaluator" else 6)


def claims(party: str, name: str) -> list[Resource]:
    sets = [one for one in resources(party, "StatefulSet") if one["metadata"]["name"] == name]
    return [claim for one in sets for claim in one["spec"]["volumeClaimTemplates"]]


def test_what_pods_use_is_there(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            claimed = {one["metadata"]["name"] for one in resources(party, "PersistentVolumeClaim")}
            configured = {one["metadata"]["name"] for one in resources(party, "ConfigMap")}
            accounts = {one["metadata"]["name"] for one in resources(party, "ServiceAccount")}
            for flink in resources(party, "FlinkDeployment"):
                assert flink["spec"]["serviceAccount"] in accounts
                # Without it the operator merges containers by their places, not by their names.
                assert (
                    flink["spec"]["flinkConfiguration"]["kubernetes.operator.pod-template.merge-arrays-by-name"]
                    == "true"
                )
            for name, template in pods(party):
                assert template["spec"].get("serviceAccountName", "hushcount") in accounts
                for volume in template["spec"]["volumes"]:
                    assert volume.get("persistentVolumeClaim", {}).get("claimName") in {None, *claimed}, name
                    # Public keys of others come from them: the party makes that one, see test_signing.py.
                    assert volume.get("configMap", {}).get("name") in {None, "trusted", *configured}, name
            assert all(one.get("automountServiceAccountToken") is False for one in resources(party, "ServiceAccount"))
            assert not resources(party, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Secret")


def test_selectors_select_the_pods_that_they_are_for(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            for one in resources(party, "Deployment", "StatefulSet"):
                assert selects(one["spec"]["selector"], labels(one["spec"]["template"]))
            found = [labels(template) for _, template in pods(party)]
            for service in resources(party, "Service"):
                assert any(selects({"matchLabels": service["spec"]["selector"]}, one) for one in found)
            for policy in resources(party, "NetworkPolicy"):
                assert any(selects(policy["spec"]["podSelector"], one) for one in found), policy["metadata"]["name"]
                for rule in [*policy["spec"].get("ingress", ()), *policy["spec"].get("egress", ())]:
                    for peer in [*rule.get("from", ()), *rule.get("to", ())]:
                        if "podSelector" in peer and "namespaceSelector" not in peer:
                            assert any(selects(peer["podSelector"], one) for one in found), policy["metadata"]["name"]


def opened(party: str, template: Resource, direction: str) -> list[Resource]:
    """Return the peers that policies open to a pod, or from it."""
    word = {"Ingress": "from", "Egress": "to"}[direction]
    return [
        peer
        for policy in resources(party, "NetworkPolicy")
        if selects(policy["spec"]["podSelector"], labels(template)) and direction in policy["spec"]["policyTypes"]
        for rule in policy["spec"].get(direction.lower(), ())
        for peer in rule.get(word, [{}])
    ]


def test_everything_is_closed_that_is_not_named(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            policies = {one["metadata"]["name"]: one["spec"] for one in resources(party, "NetworkPolicy")}
            assert policies["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
            for _, template in pods(party):
                for direction in ("Ingress", "Egress"):
                    # An empty peer is anyone.
                    assert all(opened_to for opened_to in opened(party, template, direction))
                    namespaces = {
                        peer["namespaceSelector"]["matchLabels"][NAMESPACE]
                        for peer in opened(party, template, direction)
                        if "namespaceSelector" in peer
                    }
                    assert namespaces <= {"kube-system", "flink-operator", "ingress-nginx"}


def test_only_services_are_called_from_without_the_namespace_and_only_by_the_ingress() -> None:
    called = {
        (party, name)
        for party in EVERYONE
        for name, template in pods(party)
        for peer in opened(party, template, "Ingress")
        if peer.get("namespaceSelector", {}).get("matchLabels", {}).get("kubernetes.io/metadata.name")
        == "ingress-nginx"
    }
    assert called == {("shuffler", "front"), ("evaluator", "evaluator")}


def test_only_what_reads_the_store_reaches_out_of_the_cluster(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            out = {
                name
                for name, template in pods(party)
                if any("ipBlock" in peer for peer in opened(party, template, "Egress"))
            }
            jobs = {"run", "flink-taskmanager"}
            handing = {**dict.fromkeys(PARTIES, jobs), "evaluator": {"evaluator"}}
            handing["shuffler"], handing["aux-server"] = {"front", "hand-on", *jobs}, {"hand-on", *jobs}
            assert out == handing[party]


def test_a_key_is_a_reference_and_only_where_it_opens_or_signs(subtests: pytest.Subtests) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            holders = {}
            for name, template in pods(party):
                for container in template["spec"]["containers"]:
                    for variable in container.get("env", ()):
                        if variable["name"] == "NUMBA_CACHE_DIR":
                            continue
                        assert set(variable) == {"name", "valueFrom"}, "no value stands in a manifest"
                        place = (name, container["name"], variable["name"])
                        holders[place] = variable["valueFrom"]["secretKeyRef"]
            opening = {("run", "run", "HUSHCOUNT_KEYS"), ("flink-taskmanager", "python-workers", "HUSHCOUNT_KEYS")}
            signing = {("run", "run", "HUSHCOUNT_SIGNING_KEYS")}
            wanted = {"shuffler": signing, "aux-server": opening | signing, "analyzer": opening | signing}[party]
            assert set(holders) == wanted
            secrets = {"HUSHCOUNT_KEYS": "key", "HUSHCOUNT_SIGNING_KEYS": "signing-key"}
            assert all(reference == {"name": secrets[place[2]], "key": "keys"} for place, reference in holders.items())
            assert not re.search(r"[0-9a-f]{64}(?!\S*@)", re.sub(r"sha256:[0-9a-f]{64}", "", rendered(party)))


def test_images_have_exact_tags(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            images = re.findall(r"image: (\S+)", rendered(party))
            assert len(images) >= 3
            for image in images:
                assert re.search(r":[\w.-]+(@sha256:[0-9a-f]{64})?$", image), image
                assert not image.endswith(":latest")
            assert {image for image in images if f"hushcount-{party}" in image}


def test_the_deployment_file_is_valid_and_meets_the_cluster(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            (found,) = resources(party, "ConfigMap")
            (tmp_path / "deployment.toml").write_text(found["data"]["deployment.toml"])
            deployment = Deployment.read(tmp_path / "deployment.toml")
            assert deployment.file.parties == (party,)
            options = list(deployment.file.engine.options)
            assert unknown_options(options) == []
            ports = {port["port"] for one in resources(party, "Service") for port in one["spec"]["ports"]}
            named = {int(port) for option in options for port in re.findall(r"job-server:(\d+)", option)}
            assert named == {8098, 8099}
            assert named <= ports
            pools = [
                port["containerPort"]
                for name, template in pods(party)
                if name == "flink-taskmanager"
                for container in template["spec"]["containers"]
                for port in container.get("ports", ())
            ]
            assert f"--environment_config=localhost:{pools[0]}" in options
            assert (deployment.file.keys == "env:HUSHCOUNT_KEYS") == (party != "shuffler")


def test_runs_never_overlap_and_a_killed_one_is_made_up_for(subtests: pytest.Subtests) -> None:
    for party in EVERYONE:
        with subtests.test(party=party):
            for schedule in resources(party, "CronJob"):
                assert schedule["spec"]["concurrencyPolicy"] == "Forbid"
                assert schedule["spec"]["jobTemplate"]["spec"]["backoffLimit"] == 0
                assert schedule["spec"].get("suspend") or schedule["spec"]["startingDeadlineSeconds"] > 0


def test_kubernetes_own_schemas_take_every_resource(tmp_path: Path) -> None:
    """By kubeconform, strictly; the tests above look at the parts of a FlinkDeployment."""
    for party in EVERYONE:
        assert schema_faults(rendered(party), tmp_path) == ""
        # A field that no schema names is refused, also in a policy.
        worse = rendered(party).replace("podSelector: {}", "podSelectors: {}").replace("backoffLimit", "backOffLimit")
        told = schema_faults(worse, tmp_path)
        assert "podSelectors" in told
        assert "backOffLimit" in told
