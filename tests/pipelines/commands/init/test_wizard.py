"""hushcount init at a terminal: seven questions, each checked at once, and hostile answers."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.deployment.settings import Deployment
from tests.support.jobs import write_lines

ROOT = Path(__file__).parents[4]
PATIENCE = 120.0
CTRL_C = b"\x03"
ASKED = re.compile(r"^[A-Z][^\r\n]*\?[^\r\n]*\r\n", re.MULTILINE)
"""A question is a line of its own."""


@dataclass
class Terminal:
    """A command in a terminal of 80 columns, and what it has shown."""

    end: int
    child: subprocess.Popen[bytes]
    shown: str = ""
    answered: int = 0

    def type(self, text: bytes) -> None:
        """Type a text once the next question, or the same one again, is there."""
        self.answered += 1
        self.read(self.answered)
        os.write(self.end, text)

    def questions(self) -> list[str]:
        return ASKED.findall(self.shown)

    def read(self, questions: int | None = None) -> str:
        """Read until so many questions were asked, or to the end; return all that was shown."""
        deadline = time.monotonic() + PATIENCE
        while questions is None or len(self.questions()) < questions:
            assert time.monotonic() < deadline, self.shown
            if not select.select([self.end], [], [], 1.0)[0]:
                continue
            try:
                read = os.read(self.end, 1 << 16)
            except OSError:
                # Linux says so when nobody has the other end any more.
                break
            if not read:
                break
            self.shown += read.decode("utf-8", "replace")
        assert questions is None or len(self.questions()) >= questions, self.shown
        return self.shown


def _controlled() -> None:
    """Let keys such as Ctrl-C of the terminal reach the command, also where the tests run in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(*words: object, **environment: str) -> Iterator[Terminal]:
    """Run a command in a terminal."""
    end, other = pty.openpty()
    child = subprocess.Popen(  # noqa: S603  # our own command
        [sys.executable, "-m", "pipelines", *map(str, words)], stdin=other, stdout=other, stderr=other,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80", **environment},
        start_new_session=True, preexec_fn=_controlled,  # noqa: PLW1509  # no thread of ours holds a lock
    )  # fmt: skip
    os.close(other)
    try:
        yield Terminal(end, child)
    finally:
        child.kill()
        child.wait()
        os.close(end)


def typed(directory: Path, answers: Sequence[bytes], *options: object, **environment: str) -> tuple[int, Terminal]:
    """Type answers to the questions of init; return its exit status, and what was shown."""
    with terminal("init", directory, *options, **environment) as one:
        for answer in answers:
            one.type(answer)
        one.read()
        return one.child.wait(PATIENCE), one


def test_seven_questions_make_a_deployment_and_a_wrong_answer_is_asked_again(tmp_path: Path) -> None:
    words = write_lines(tmp_path / "words.txt", ["alpha", "größe", "gamma"])
    answers = [
        "Ünsinn\n".encode(), b"\n",
        b"nowhere.txt\n", str(words).encode() + b"\n",
        b"none\n", b"20000\n",
        b"1\n", b"2 %\n",
        b"a week\n", b"7d\n",
        b"2.5\n",
        b"perhaps\n", b"1\n",
    ]  # fmt: skip
    status, shown = typed(tmp_path / "usage", answers, NO_COLOR="1")
    assert status == 0, shown.shown
    campaign = Campaign.read(tmp_path / "usage" / "campaign.json")
    assert campaign.id == "usage", "the directory's name is the default"
    assert campaign.mechanism is not None
    assert campaign.mechanism.epsilon == 2.5
    assert campaign.discovery is not None
    assert campaign.dictionary is not None
    assert Deployment.read(tmp_path / "usage" / "deployment.toml").windows.length.days == 7
    asked = shown.questions()
    assert len(set(asked)) == 7
    assert len(asked) == len(answers)
    assert all(len(question) <= 80 for question in asked)
    for said in (
        "id is 'Ünsinn'", ".*nowhere.txt", "clients is 'none'", "want-share is '1'", "window is 'a week'",
        "discovery-epsilon is 'perhaps'",
    ):  # fmt: skip
        assert re.search(rf"\r\n  {said}", shown.shown), "one sentence below the answer"
    assert re.search(r"\x1b\[[0-9;]*[349][0-9]", shown.shown) is None, "colours are off"


@pytest.mark.long
def test_options_and_defaults_answer_the_questions(tmp_path: Path) -> None:
    given = ("--id", "usage", "--clients", 5000, "--no-discovery", "--window", "1h")
    status, shown = typed(tmp_path / "a", [b"open\n", b"10%\n", b"\n"], *given)
    assert status == 0, shown.shown
    assert len(shown.questions()) == 3
    values, share, epsilon = shown.questions()
    assert "[" not in values, "it has no default"
    assert share.endswith("[5%]\r\n")
    # The least epsilon of the grid that shows 10 % of 5,000 people; each of the six is offered with what it shows.
    assert epsilon.endswith("[1.5]\r\n")
    offered = dict(re.findall(r"^  ([0-9.]+): items of ([0-9.]+) % show; [^\r\n]* odds by ", shown.shown, re.MULTILINE))
    assert [float(one) for one in offered] == [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    assert float(offered["1.5"]) <= 10.0 < float(offered["1"])
    status, shown = typed(tmp_path / "usage", [], "--open-domain", "--yes")
    assert status == 0, shown.shown
    assert shown.questions() == []


@pytest.mark.long
def test_a_week_is_proposed_with_its_assumption_if_a_day_has_too_few_people(tmp_path: Path) -> None:
    status, shown = typed(tmp_path / "usage", [b"300\n", b"\n", b"\n", b"\n", b"\n"], "--open-domain", "--id", "a")
    assert status == 0, shown.shown
    assert shown.questions()[2].endswith("[7d]\r\n")
    said = " ".join(shown.shown.partition(shown.questions()[2])[0].split())
    assert " 300 people in 1d make 2,100 in 7d only if " in said
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.shown)
    assert all(len(line) <= 80 for line in plain.splitlines() if str(tmp_path) not in line)
    assert Deployment.read(tmp_path / "usage" / "deployment.toml").windows.length.days == 7


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"\x1b]0;hacked\x07\x1b[2J\n", r"id is '\x1b]0;hacked\x07\x1b[2J'"),
        (b"a" * 3000 + b"\n", " 1,000 "),
        (b"\xff\xfe\n", "UTF-8"),
        (b"../../etc\n", "id is '../../etc'"),
        (b"\x16\x00\n", r"id is '\x00'"),
    ],
    ids=["escapes", "long", "latin", "path", "nul"],
)
@pytest.mark.long(but=("long",))
def test_a_hostile_answer_is_one_sentence_and_the_question_comes_again(
    tmp_path: Path, answer: bytes, says: str
) -> None:
    with terminal("init", tmp_path / "usage", PYTHONIOENCODING="utf-8:strict") as one:
        one.type(answer)
        first = one.read(2)
        assert says in first.replace("\r\n", "")
        assert len(set(one.questions())) == 1, "the rest of a long line answers nothing"
        one.type(answer)
        one.type(answer)
        assert "error: " in one.read()
        assert one.child.wait(PATIENCE) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_who_ends_the_input_or_presses_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    status, shown = typed(tmp_path / "usage", [b"\n", b"\x04"])
    assert status == 2
    assert "--dictionary FILE, or --open-domain" in shown.shown
    status, shown = typed(tmp_path / "usage", [b"\n", CTRL_C])
    assert status == 130
    assert shown.shown.endswith("stopped\r\n")
    assert list(tmp_path.iterdir()) == []
