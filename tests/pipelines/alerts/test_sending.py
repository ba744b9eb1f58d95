"""One attempt: signed, bounded in bytes and time, sent nowhere else, and without the secret in any error."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from pipelines.alerts.alert import Alert
from pipelines.alerts.sending import Program, Undelivered, Webhook
from pipelines.alerts.signing import Secret, read_secret
from pipelines.deployment.alerting import AlertsPart, site_of
from tests.pipelines.alerts.receiver import KEY, SECRET, Receiver, is_signed, receiving
from tests.shuffler.collector.running import wait_for

LIMIT, WAIT = 0.3, 60.0
BODY = b'{"says": "gr\xc3\xb6\xc3\x9fe"}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def webhook(address: str, key: bytes = KEY, seconds: float = WAIT) -> Webhook:
    site, path = site_of(address, False, timedelta(seconds=seconds))
    return Webhook(site, path, Secret(key))


def failure(place: Webhook | Program) -> Undelivered:
    with pytest.raises(Undelivered) as raised:
        place.send("alert_1", BODY)
    for secret in ("/hook", "team=a", SECRET):
        assert secret not in str(raised.value)
    return raised.value


def test_a_post_is_signed_as_standard_webhooks_say(receiver: Receiver) -> None:
    before = int(time.time())
    webhook(receiver.address).send("alert_1", BODY)
    webhook(receiver.address, b"k" * 24).send("alert_1", BODY)
    (headers, body), (other, _) = receiver.got
    assert body == BODY
    assert headers["content-type"] == "application/json"
    assert before <= int(headers["webhook-timestamp"]) <= time.time()
    assert is_signed(headers, body)
    assert not is_signed(headers, body + b" ")
    assert not is_signed({**headers, "webhook-id": "alert_2"}, body)
    assert not is_signed(other, body)


def test_the_signature_is_that_of_the_example_of_the_standard() -> None:
    # From the test vectors of the reference libraries.
    secret = Secret(base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    headers = secret.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_another_status_is_a_failure_and_a_redirect_is_not_followed(
    receiver: Receiver, subtests: pytest.Subtests
) -> None:
    for status, down in [(500, True), (503, True), (429, True), (400, False), (302, False)]:
        with subtests.test(status=status):
            with receiving() as elsewhere:
                receiver.got.clear()
                receiver.status, receiver.headers = status, {"Location": elsewhere.address}
                error = failure(webhook(receiver.address))
                assert f"status {status}" in str(error)
                assert error.down == down
                assert not elsewhere.got
            assert len(receiver.got) == 1


def test_an_answer_that_never_ends_or_is_long_is_given_up(receiver: Receiver) -> None:
    """Without a limit this would wait for ever: the receiver answers in full only when it ends."""
    for name, value, seconds in (("hold", True, LIMIT), ("drip", True, LIMIT), ("length", 1 << 20, WAIT)):
        setattr(receiver, name, value)
        error = failure(webhook(receiver.address, seconds=seconds))
        setattr(receiver, name, type(value)())
        assert error.down
        assert ("long" if name == "length" else "time") in str(error)


def test_nobody_there_is_a_failure_at_once() -> None:
    with receiving() as gone:
        address = gone.address
    assert failure(webhook(address)).down


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    with receiving(context) as receiver:
        error = failure(webhook(receiver.address.replace("http:", "https:")))
        assert "certificate" in str(error)
        assert not receiver.got


def self_signed(directory: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(timezone.utc)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = directory / "certificate.pem"
    path.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


def program(directory: Path, code: str, seconds: float = WAIT) -> Program:
    return Program((sys.executable, "-S", "-E", "-c", code), directory, seconds)


def test_a_program_reads_the_alert_and_no_argument_has_a_part_of_it(tmp_path: Path) -> None:
    code = "import sys; open('got', 'wb').write(sys.stdin.buffer.read() + repr(sys.argv).encode())"
    program(tmp_path, code).send("alert_1", BODY)
    assert (tmp_path / "got").read_bytes() == BODY + b"['-c']"


def test_a_program_that_fails_or_is_not_there_is_a_failure(tmp_path: Path) -> None:
    assert "status 3" in str(failure(program(tmp_path, "raise SystemExit(3)")))
    assert "./not-there" in str(failure(Program(("./not-there",), tmp_path, WAIT)))


def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, groups = subprocess.Popen.communicate, []

    def once_it_forked(child: subprocess.Popen[bytes], body: bytes, seconds: float) -> object:
        groups.append(child.pid)
        wait_for((tmp_path / "forked").exists, WAIT)
        return real(child, body, seconds)

    monkeypatch.setattr(subprocess.Popen, "communicate", once_it_forked)
    error = failure(program(tmp_path, "import os, time; os.fork(); open('forked', 'w'); time.sleep(600)", 0.1))
    assert error.down
    assert "0.1 s" in str(error)
    (group,) = groups
    wait_for(lambda: not _group_lives(group), WAIT)


def _group_lives(group: int) -> bool:
    stats = [path.read_text().rpartition(")")[2].split() for path in _stat_files()]
    return any(int(fields[2]) == group and fields[0] != "Z" for fields in stats)


def _stat_files() -> Iterator[Path]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            path.read_text()
        except OSError:
            continue
        yield path


def test_a_secret_is_read_from_a_reference_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"{SECRET}\n")
    secret = read_secret("env:HOOK")
    assert secret.key == KEY
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    assert read_secret(str(path)) == secret
    assert SECRET[6:20] not in repr(secret)
    assert repr(KEY)[2:10] not in repr(
        Webhook(site_of("http://localhost/", False, timedelta(seconds=1))[0], "/", secret)
    )
    for taken in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="pickled"):
            taken(secret)
    for wrong in ("", "whsec_", "whsec_c2hvcnQ=", SECRET[6:], "whsec_!!!", SECRET + SECRET):
        monkeypatch.setenv("HOOK", wrong)
        with pytest.raises(UsageError, match="env:HOOK") as raised:
            read_secret("env:HOOK")
        assert wrong == "" or wrong not in str(raised.value).replace("whsec_ and", "")


def test_settings_that_cannot_be_used_are_refused(subtests: pytest.Subtests) -> None:
    for given, said in [
        ({}, "give one of them"),
        ({"webhook": "https://a.example/x", "secret": "env:S", "command": ("tell",)}, "give one of them"),
        ({"webhook": "https://a.example/x"}, "secret: goes with webhook"),
        ({"webhook": "https://a.example/x", "secret": "whsec_tokentokentoken"}, "is the secret itself"),
        ({"webhook": "http://a.example/token", "secret": "env:S"}, "must begin with https://"),
        ({"webhook": "https://user@a.example/token", "secret": "env:S"}, "without name or #"),
        ({"webhook": "ftp://a.example/token", "secret": "env:S"}, "without name or #"),
        ({"webhook": "https://a.example/to\nken", "secret": "env:S"}, "without name or #"),
        ({"command": ("tell",), "timeout": "2m"}, "timeout is 0:02:00"),
        ({"command": ("tell",), "give_up_after": "1m"}, "give_up_after is 0:01:00"),
        ({"command": ("tell",), "items": ["a", "a"]}, "each once"),
        ({"command": ("tell",), "items": ["a\nb"]}, "holds a control character"),
        ({"command": ("tell",), "false_alarms": 0.0}, "greater than or equal"),
    ]:
        with subtests.test(given=given):
            with pytest.raises(ValueError, match=said) as raised:
                AlertsPart.model_validate(given)
            assert "token" not in raised.value.errors()[0]["msg"]  # type: ignore[attr-defined]


def test_localhost_and_who_asks_for_it_may_use_plain_http() -> None:
    for given in ("http://localhost:99/x", "http://127.0.0.1/x", "https://a.example/x?y=z"):
        AlertsPart.model_validate({"webhook": given, "secret": "env:S"})
    AlertsPart.model_validate({"webhook": "http://a.example/x", "secret": "env:S", "plain_http": True})


def test_the_id_of_a_fact_is_the_same_for_ever_and_another_for_another() -> None:
    alert = Alert("change", "words", "item größe", "rose", "it rose", (("after", 0.5),))
    assert re.fullmatch("alert_[0-9a-f]{32}", alert.id(0))
    others = {
        alert.id(0),
        alert.id(1),
        Alert("change", "words", "item größe", "fell", "").id(0),
        Alert("change", "words", "item", "größe rose", "").id(0),
        Alert("change", "word", "s item größe", "rose", "").id(0),
        Alert("volume", "words", "item größe", "rose", "").id(0),
    }
    assert len(others) == 6
    assert Alert("change", "words", "item größe", "rose", "other words").id(0) == alert.id(0)
    sent = json.loads(alert.body("alert_x", datetime(2026, 11, 1, tzinfo=timezone.utc)))
    assert sent["type"] == "hushcount.alert.change"
    assert sent["timestamp"] == "2026-11-01T00:00:00+00:00"
    assert sent["data"]["numbers"] == {"after": 0.5}
