"""One attempt: signed, bounded in bytes and time, sent nowhere else, and without the secret in any error."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from hushcount.delivery.site import Site
from hushcount.errors import UsageError
from pipelines.deployment.parts import AlertsPart, site_of
from pipelines.monitoring.receivers import Message, Program, Secret, Undelivered, Webhook, read_secret
from tests.hushcount.delivery.misbehaving import Heard, http, saying, serving
from tests.shuffler.collector.running import wait_for

LIMIT, WAIT = 0.3, 60.0
KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
MESSAGE = Message("alert_1", "gr\u00f6\u00dfe \u202e rose", {"campaign": "words"})


def webhook(heard: Heard, seconds: float = WAIT) -> Webhook:
    site, path = site_of(f"{heard.site.address}/hook?team=a")
    return Webhook(Site(site.address, seconds=seconds), path, Secret(KEY))


def failure(place: Webhook | Program) -> Undelivered:
    with pytest.raises(Undelivered) as raised:
        place.send(MESSAGE)
    for secret in ("/hook", "team=a", SECRET):
        assert secret not in str(raised.value)
    return raised.value


def test_a_post_is_json_that_no_terminal_obeys() -> None:
    with serving(saying(http(204))) as heard:
        webhook(heard).send(MESSAGE)
    head, _, body = heard.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?team=a HTTP/1.1\r\n")
    assert b"webhook-id: alert_1\r\n" in head
    assert body.isascii()
    assert body.decode().isprintable()
    assert json.loads(body) == {
        "type": "hushcount.alert", "data": {"id": "alert_1", "says": MESSAGE.says, "campaign": "words"},
    }  # fmt: skip


def test_the_signature_is_that_of_the_example_of_the_standard() -> None:
    # From the test vectors of the reference libraries.
    secret = Secret(base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    headers = secret.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_another_status_is_a_failure_and_a_redirect_is_not_followed(subtests: pytest.Subtests) -> None:
    for status, down in [(500, True), (503, True), (429, True), (400, False), (302, False)]:
        with subtests.test(status=status), serving(saying(http(204))) as elsewhere:
            with serving(saying(http(status, b"", f"Location: {elsewhere.site.address}"))) as heard:
                error = failure(webhook(heard))
            assert f"status {status}" in str(error)
            assert error.down == down
            assert (len(heard.requests), elsewhere.requests) == (1, [])


def test_a_receiver_that_does_not_answer_is_given_up() -> None:
    """Without a limit this would wait for ever: the receiver goes on only when the sender went."""
    with serving(lambda connection: connection.recv(1) and None) as heard:
        error = failure(webhook(heard, LIMIT))
    assert error.down
    assert "time" in str(error)


def program(directory: Path, code: str, seconds: float = WAIT) -> Program:
    return Program((sys.executable, "-S", "-E", "-c", code), directory, seconds)


def test_a_program_reads_the_alert_and_no_argument_has_a_part_of_it(tmp_path: Path) -> None:
    code = "import sys; open('got', 'wb').write(sys.stdin.buffer.read() + repr(sys.argv).encode())"
    program(tmp_path, code).send(MESSAGE)
    assert (tmp_path / "got").read_bytes() == f"{MESSAGE.says}\nalert_1\n['-c']".encode()


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
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its = path.read_text().rpartition(")")[2].split()[:3]
            if int(its) == group and state != "Z":
                return True
    return False


def test_a_secret_is_read_from_a_reference_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"{SECRET}\n")
    secret = read_secret("env:HOOK")
    assert secret.key == KEY
    path = tmp_path / "secret"
    path.write_text(SECRET)
    path.chmod(0o600)
    assert read_secret(str(path)) == secret
    assert SECRET[6:20] not in repr(secret)
    assert repr(KEY)[2:10] not in repr(Webhook(*site_of("http://localhost/"), secret))
    for taken in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="pickled"):
            taken(secret)
    for wrong in ("", "whsec_", "whsec_c2hvcnQ=", SECRET[6:], "whsec_!!!", SECRET + SECRET):
        monkeypatch.setenv("HOOK", wrong)
        with pytest.raises(UsageError, match="env:HOOK") as raised:
            read_secret("env:HOOK")
        assert wrong == "" or wrong not in str(raised.value).replace("whsec_ and", "")


def test_settings_that_cannot_be_used_are_refused(subtests: pytest.Subtests) -> None:
    address = "webhook must be an address such as"
    for given, said in [
        ({}, "give exactly one of them"),
        ({"webhook": "https://a.example/x", "secret": "env:S", "command": ("tell",)}, "give exactly one of them"),
        ({"webhook": "https://a.example/x"}, "secret: give it if and only if webhook"),
        ({"webhook": "https://a.example/x", "secret": "whsec_tokentokentoken"}, "is the secret itself"),
        *(
            ({"webhook": wrong, "secret": "env:S"}, address)
            for wrong in (
                "http://a.example/token", "https://user@a.example/token", "ftp://a.example/token", "https:///token",
                "https://a.example/to\nken", "https://a.example/to ken", "https://a.example:0/token",
                "https://[a/token", "https://a.example/#token", f"https://a.example/{'token' * 500}",
            )
        ),
        ({"command": ("tell",), "items": ["a", "a"]}, "each once"),
        ({"command": ("tell",), "items": ["a\nb"]}, "holds a control character"),
        ({"command": ("tell",), "false_alarms": 0.0}, "greater than or equal"),
    ]:  # fmt: skip
        with subtests.test(given=given):
            with pytest.raises(ValueError, match=said) as raised:
                AlertsPart.model_validate(given)
            assert "token" not in raised.value.errors()[0]["msg"]  # type: ignore[attr-defined]
    for allowed in ("http://localhost:99/x", "http://127.0.0.1/x", "https://a.example/x?y=z"):
        AlertsPart.model_validate({"webhook": allowed, "secret": "env:S"})
