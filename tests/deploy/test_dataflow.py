"""deploy/dataflow: templates in Dataflow's form, options that Beam knows, a job that is sent and finished apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, SetupOptions, WorkerOptions
from pydantic import BaseModel, ConfigDict, Field

from hushcount import __version__
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import SignatureError
from hushcount.errors import HushcountError, NotYet, UsageError
from keys.directories import private_keys
from pipelines.deployment.settings import Deployment
from pipelines.files.beam_options import unknown_options
from pipelines.jobs.job import Place
from pipelines.outputs.received_summary import folder_of
from tests.deploy.conftest import DEPLOY, ROOT, SIGNERS, script
from tests.support.jobs import Chain, done, estimates, summary
from tests.support.stub_store import StubStore

FOLDER = DEPLOY / "dataflow"
TEMPLATES = ("shuffle", "release", "reveal", "analyze")
PARTIES = ("shuffler", "aux-server", "analyzer")


class Parameter(BaseModel):
    """google.dataflow.v1beta3.ParameterMetadata, with the values of ParameterType that we may need."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9_]*$")]
    label: Annotated[str, Field(min_length=1)]
    helpText: Annotated[str, Field(min_length=1)]  # noqa: N815  # Dataflow's name
    isOptional: bool = False  # noqa: N815
    regexes: list[re.Pattern[str]] = []
    paramType: Literal["TEXT", "GCS_READ_FILE", "GCS_READ_FOLDER", "GCS_WRITE_FOLDER"]  # noqa: N815
    defaultValue: str = ""  # noqa: N815


class Template(BaseModel):
    """google.dataflow.v1beta3.TemplateMetadata."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, Field(min_length=1)]
    description: str
    parameters: Annotated[list[Parameter], Field(min_length=1)]
    streaming: bool


def template(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return data


def test_a_template_is_of_dataflows_form(subtests: pytest.Subtests) -> None:
    for name in TEMPLATES:
        with subtests.test(name=name):
            names = [one.name for one in Template.model_validate_json((FOLDER / f"{name}.json").read_text()).parameters]
            assert len(set(names)) == len(names)


def test_a_template_has_the_launchers_parameters_and_takes_no_secret(subtests: pytest.Subtests) -> None:
    for name in TEMPLATES:
        with subtests.test(name=name):
            parameters = {one["name"]: one for one in template(name)["parameters"]}
            required = {one for one, parameter in parameters.items() if not parameter["isOptional"]}
            assert required == {"job", "campaign", "input", "out"} | (
                set() if name == "shuffle" else {"keys", "signed_by"}
            )
            optional = {
                "analyze": {"dictionary"},
                "release": {"uncapped"},
                "reveal": {"uncapped", "evaluator", "evaluator_token"},
            }
            assert set(parameters) - required == optional.get(name, set())
            good = {
                "job": name,
                "campaign": "gs://example/campaigns/words.json",
                "input": "gs://example-shuffler-to-analyzer/shuffled/words/20261121T000000Z",
                "out": "gs://example/results",
                "keys": "/etc/hushcount/keys",
                "dictionary": "gs://example/campaigns/words.txt",
                "signed_by": "gs://example/trusted/shuffler/public.json",
                "uncapped": "true",
                "evaluator": "https://evaluator.example.com",
                "evaluator_token": "gcp-secret://projects/example/secrets/verifier/versions/1",
            }
            bad = {
                "job": ["demo", f"{name} --keys=x", "shuffle" if name != "shuffle" else "analyze"],
                "campaign": ["words.json", "gs://example/words.json?x", "s3://example/words.json"],
                "input": ["results", "gs://example/*"],
                "out": ["results", "gs://"],
                "keys": ["0" * 64, "gs://example/keys", '{"secret": "00"}', "env:KEYS"],
                "dictionary": ["words.txt"],
                "signed_by": ["trusted/public.json", "gs://example/trusted/*.json"],
                "uncapped": ["yes", "true --keys=x"],
                "evaluator": [
                    "evaluator.example.com",
                    "http://evaluator.example.com",
                    "https://e.example.com --keys=x",
                    "keys",
                ],
                "evaluator_token": ["a-token-of-20-letters", "env:TOKEN", "token.txt"],
            }
            for one, parameter in parameters.items():
                (regex,) = parameter["regexes"]
                assert regex.startswith("^")
                assert regex.endswith("$")
                assert re.match(regex, good[one]), one
                assert [value for value in bad[one] if re.match(regex, value)] == []


def test_a_partys_options_are_known_private_and_encrypted(subtests: pytest.Subtests) -> None:
    for party in PARTIES:
        with subtests.test(party=party):
            deployment = Deployment.read(FOLDER / f"{party}.toml")
            assert deployment.file.parties == (party,)
            assert deployment.file.engine.runner == "DataflowRunner"
            options = list(deployment.file.engine.options)
            assert unknown_options(options) == []
            cloud, workers = (
                PipelineOptions(options).view_as(GoogleCloudOptions),
                PipelineOptions(options).view_as(WorkerOptions),
            )
            assert workers.use_public_ips is False
            assert workers.autoscaling_algorithm == "THROUGHPUT_BASED"
            assert workers.subnetwork
            assert workers.max_num_workers > 1
            assert re.fullmatch(
                r"projects/[\w-]+/locations/([\w-]+)/keyRings/\w+/cryptoKeys/\w+", cloud.dataflow_kms_key
            )
            # A key of another region is refused when the job starts.
            assert cloud.dataflow_kms_key.split("/")[3] == cloud.region
            assert cloud.service_account_email.endswith(f"@example-{party}.iam.gserviceaccount.com")
            assert f"/example-{party}/" in workers.sdk_container_image
            assert not workers.sdk_container_image.endswith(":latest")


def test_a_party_without_an_image_sends_all_distributions_by_options_that_beam_knows(
    subtests: pytest.Subtests,
) -> None:
    (lanes,) = re.findall(r'^version = "(.+)"$', (ROOT / "sealed_lanes" / "pyproject.toml").read_text(), re.MULTILINE)
    for party in PARTIES:
        with subtests.test(party=party):
            named = re.findall(r'"(--(?:extra_package|setup_file)=[^"]+)"', (FOLDER / f"{party}.toml").read_text())
            assert unknown_options(named) == []
            sent = PipelineOptions(named).view_as(SetupOptions)
            assert Path(sent.setup_file).name == "setup.py"
            wheels = [Path(one).name for one in sent.extra_packages]
            assert wheels == [f"hushcount-{__version__}-py3-none-any.whl", f"sealed_lanes-{lanes}-py3-none-any.whl"]


def test_streaming_options_are_known() -> None:
    options = (FOLDER / "streaming.options").read_text().split()
    assert unknown_options(options) == []
    assert PipelineOptions(options).view_as(GoogleCloudOptions).enable_streaming_engine is True


def test_no_two_parties_share_an_account_a_project_or_a_key() -> None:
    named = [
        set(re.findall(r"[\w@.-]*example-[\w.@/-]+", (FOLDER / f"{party}.toml").read_text().partition("[engine]")[2]))
        for party in PARTIES
    ]
    assert all(named)
    for index, one in enumerate(named):
        for other in named[index + 1 :]:
            assert not one & other


def test_the_image_is_the_partys_with_the_boot_of_the_locked_beam() -> None:
    """It holds the party's packages and what hands on, because it is made from the party's image."""
    recipe = (FOLDER / "Dockerfile").read_text()
    (beams,) = re.findall(r"^apache-beam==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert re.search(rf"^ARG SDK=apache/beam_python3\.\d+_sdk:{re.escape(beams)}$", recipe, re.MULTILINE)
    assert re.findall(r"^FROM (\S+)", recipe, re.MULTILINE)[-1] == "${PARTY}"
    copied = re.findall(r"^COPY (?!--from)(\S+)", recipe, re.MULTILINE)
    assert copied == ["deploy/dataflow/*.py"]


@pytest.fixture
def launch() -> Iterator[ModuleType]:
    """The launcher, with a store that is empty."""
    with script(FOLDER / "launch.py") as module:
        StubStore.clear()
        yield module
        StubStore.clear()


def upload(chain: Chain) -> None:
    for name, path in ((chain.campaign_path.name, chain.campaign_path), ("items.txt", chain.dictionary)):
        StubStore.put(f"stub://store/{name}", path.read_bytes())
    for name in ("encoded", "shuffled", "released"):
        put(chain.path(name))
    for party in SIGNERS:
        keys = chain.campaign_path.parent / "signing-keys" / party / "public.json"
        StubStore.put(f"stub://store/trusted/{party}.json", keys.read_bytes())


def put(directory: Path) -> None:
    """Upload an output under its own name, for which it was signed."""
    for path in directory.rglob("*"):
        if path.is_file():
            StubStore.put(f"stub://store/{directory.name}/{path.relative_to(directory)}", path.read_bytes())


def asked(chain: Chain, job: str, source: str) -> list[str]:
    paths = {"campaign": chain.campaign_path.name, "dictionary": "items.txt", "input": source, "out": "made"}
    if job != "shuffle":
        paths["signed_by"] = f"trusted/{'aux-server' if job == 'reveal' else 'shuffler'}.json"
    keys = [] if job == "shuffle" else [f"--keys={chain.keys}"]
    return [f"--job={job}", *keys, *(f"--{name}=stub://store/{path}" for name, path in paths.items())]


def finishing(chain: Chain, arguments: list[str]) -> list[str]:
    """Return how a job is finished: with the key of whoever hands on."""
    party = {"--job=shuffle": "shuffler", "--job=release": "aux-server"}.get(arguments[0])
    keys = chain.campaign_path.parent / "signing-keys"
    return ["finish", *arguments, *([] if party is None else [f"--sign_with={keys / party}"])]


def sent(launch: ModuleType, arguments: list[str]) -> beam.Pipeline:
    """Return what main would send to Dataflow."""
    known = launch.parsed(arguments)[0]
    made: beam.Pipeline = launch.built(known, "apache_beam.runners.portability.fn_api_runner.FnApiRunner", ())
    return made


def fetched(directory: Path) -> Path:
    for path, content in StubStore.objects.items():
        if path.startswith("stub://store/made/"):
            target = directory / path.removeprefix("stub://store/made/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return directory


SOURCES = {
    "shuffle": "graph-encoded",
    "release": "graph-shuffled",
    "reveal": "graph-released",
    "analyze": "graph-shuffled",
}
MAIN = {"shuffle": "reports", "release": "bins", "reveal": "found.csv", "analyze": "estimates.parquet"}


@pytest.mark.parametrize("job", TEMPLATES)
@pytest.mark.long(but=("shuffle",))
def test_a_job_that_is_sent_and_finished_apart_gives_the_whole_result(
    launch: ModuleType, chain: Chain, tmp_path: Path, job: str
) -> None:
    upload(chain)
    arguments = asked(chain, job, SOURCES[job])
    pipeline = sent(launch, arguments)
    assert not [path for path in StubStore.objects if path.startswith("stub://store/made/")]
    with pytest.raises(NotYet):
        launch.main(finishing(chain, arguments))
    pipeline.run().wait_until_finish()
    assert "stub://store/made/summary.json" not in StubStore.objects
    launch.main(finishing(chain, arguments))
    assert StubStore.named[-1] == "stub://store/made/summary.json"
    made = fetched(tmp_path / "made")
    where = Path(folder_of(str(made)))
    assert (where / MAIN[job]).exists()
    assert not list(made.rglob(".*"))
    streams = summary(made)["streams"].values()
    assert all(one["received"] == 120 and not one["rejected"] for one in streams)
    assert (where / "summary.json.sig").exists() == (job in ("shuffle", "release"))
    with pytest.raises(UsageError, match="stub://store/made"):
        launch.main(finishing(chain, arguments))


@pytest.mark.long
def test_what_was_analyzed_apart_is_what_hushcount_analyze_finds(
    launch: ModuleType, chain: Chain, tmp_path: Path
) -> None:
    upload(chain)
    arguments = asked(chain, "analyze", SOURCES["analyze"])
    sent(launch, arguments).run().wait_until_finish()
    launch.main(finishing(chain, arguments))
    assert estimates(Path(folder_of(str(fetched(tmp_path / "made"))))) == estimates(chain.analyze())


@pytest.mark.long
def test_a_job_that_lost_a_part_is_not_finished(launch: ModuleType, chain: Chain) -> None:
    upload(chain)
    arguments = asked(chain, "shuffle", SOURCES["shuffle"])
    sent(launch, arguments).run().wait_until_finish()
    lost = next(path for path in StubStore.objects if path.startswith("stub://store/made/") and "/reports/" in path)
    del StubStore.objects[lost]
    with pytest.raises(HushcountError, match="were written"):
        launch.main(finishing(chain, arguments))
    assert "stub://store/made/summary.json" not in StubStore.objects


def test_the_launcher_refuses_what_would_not_be_launched(launch: ModuleType, chain: Chain) -> None:
    arguments = asked(chain, "analyze", SOURCES["analyze"])
    with pytest.raises(UsageError, match="--template_location is missing"):
        launch.main(arguments)
    for job in ("release", "reveal", "analyze"):
        whole = asked(chain, job, SOURCES[job])
        for option in ("--keys", "--signed_by"):
            with pytest.raises(UsageError, match=f"{option} is missing"):
                launch.main([one for one in whole if not one.startswith(option)])
    for job in ("shuffle", "release"):
        with pytest.raises(UsageError, match=f"--sign_with is missing.*{job}"):
            launch.main(["finish", *asked(chain, job, SOURCES[job])])


def test_what_nobody_signed_is_neither_sent_nor_finished(launch: ModuleType, chain: Chain) -> None:
    upload(chain)
    arguments = asked(chain, "analyze", SOURCES["analyze"])
    StubStore.put("stub://store/graph-shuffled/reports/planted.blocks", b"planted")
    with pytest.raises(SignatureError, match=r"planted\.blocks was not signed"):
        sent(launch, arguments)
    StubStore.put("stub://store/made/.counts.json", b"{}")
    with pytest.raises(SignatureError, match=r"planted\.blocks was not signed"):
        launch.main(finishing(chain, arguments))


@dataclass(frozen=True)
class Leaking:
    """A job with the bytes of a private key in its graph."""

    job: Any
    secret: bytes

    @property
    def campaign(self) -> Campaign:
        whole: Campaign = self.job.campaign
        return whole

    def graph(self, pipeline: beam.Pipeline, place: Place) -> None:
        self.job.graph(pipeline, place)
        _ = pipeline | "leak" >> beam.Create([self.secret])


def test_a_graph_that_holds_a_key_is_refused_before_anything_is_sent(
    launch: ModuleType, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(chain)
    planned, ran = launch.planned, []
    monkeypatch.setattr(beam.Pipeline, "run", lambda pipeline, *_: ran.append(pipeline))
    cloud = (
        "project=example",
        "region=europe-west1",
        "temp_location=gs://example/tmp",
        "template_location=gs://example/t",
    )
    arguments = [*asked(chain, "analyze", SOURCES["analyze"]), *(f"--{option}" for option in cloud)]
    launch.main(arguments)
    assert len(ran) == 1
    secret = private_keys(chain.keys)[0].secret_for_storage()
    monkeypatch.setattr(launch, "planned", lambda *given: Leaking(planned(*given), secret))
    with pytest.raises(HushcountError, match=r"must not be sent: step 'leak' holds a private key"):
        launch.main(arguments)
    assert len(ran) == 1
    assert not [path for path in StubStore.objects if path.startswith("stub://store/made/")]


@pytest.mark.long
def test_discovery_without_a_cap_is_sent_only_where_it_is_wanted(launch: ModuleType, chain: Chain) -> None:
    """Of envelopes without a client each; the auxiliary server is asked, and the analyzer after it."""
    upload(chain)
    root = chain.campaign_path.parent
    values = ("--values", root / "values.txt", "--out", root / "anyone")
    done("job", "encode", "--campaign", chain.campaign_path, *values)
    signed = ("--sign-with", root / "signing-keys" / "shuffler")
    both = ("--input", root / "anyone", "--out", root / "anyone-shuffled")
    done("job", "shuffle", "--campaign", chain.campaign_path, *both, *signed)
    put(root / "anyone-shuffled")
    arguments = asked(chain, "release", "anyone-shuffled")
    with pytest.raises(UsageError, match=r"'none'.*'client-token'.*--uncapped"):
        sent(launch, arguments)
    wanted = [*arguments, "--uncapped=true"]
    sent(launch, wanted).run().wait_until_finish()
    with pytest.raises(UsageError, match=r"'none'.*'client-token'"):
        launch.main(finishing(chain, arguments))
    launch.main(finishing(chain, wanted))
    assert json.loads(StubStore.objects["stub://store/made/summary.json"])["authentication"] == "none"
    reveal = [
        one.replace("--out=stub://store/made", "--out=stub://store/found") for one in asked(chain, "reveal", "made")
    ]
    with pytest.raises(UsageError, match=r"'none'.*'client-token'"):
        sent(launch, reveal)
    sent(launch, [*reveal, "--uncapped=true"])
