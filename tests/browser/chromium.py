"""A real Chromium: devices, tabs, code that runs in them, a network that goes away, tabs that are killed."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXECUTABLE = Path("/usr/bin/chromium")


class Chromium:
    """The browser, driven by tests/browser/drive.mjs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: str, **given: Any) -> Any:
        """Return the answer to a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **given}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the browser ended"}')
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def device(self, url: str, **options: Any) -> Tab:
        """Open a page on a device of its own: nothing is stored there."""
        return Tab(self, self.ask("device", url=url, **options))

    def close(self) -> None:
        """Throw all devices away, and forget what their pages requested."""
        self.ask("close")

    def posts(self) -> list[str]:
        """Return the addresses of all POST requests since the last call."""
        return list(self.ask("posts"))

    def requests(self) -> list[str]:
        """Return the addresses of all requests since the last call."""
        return list(self.ask("requests"))

    def download(self) -> tuple[str, bytes]:
        """Return the name and the content of the next file that a page saved."""
        name, content = self.ask("download")
        return str(name), base64.b64decode(content)

    def faults(self) -> list[str]:
        """Return uncaught errors and what a content security policy refused, since the last call."""
        return list(self.ask("faults"))


@dataclass(frozen=True)
class Tab:
    """A tab of a device."""

    browser: Chromium
    number: int

    def run(self, code: str, given: Any = None) -> Any:
        """Call a function of the page, in JavaScript, and return what it resolves to."""
        return self.browser.ask("evaluate", page=self.number, code=code, given=given)

    def another(self, url: str) -> Tab:
        """Open another tab of the same device."""
        return Tab(self.browser, self.browser.ask("tab", page=self.number, url=url))

    def offline(self, value: bool) -> None:
        """Take the device off the network, or put it back."""
        self.browser.ask("offline", page=self.number, value=value)

    def crash(self) -> None:
        """Kill the tab's process."""
        self.browser.ask("crash", page=self.number)

    def press(self, key: str) -> None:
        """Press a key."""
        self.browser.ask("press", page=self.number, key=key)

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.browser.ask("type", page=self.number, text=text)

    def click(self, selector: str) -> None:
        """Click on an element that is seen."""
        self.browser.ask("click", page=self.number, selector=selector)

    def move(self, x: float, y: float) -> None:
        """Move the mouse to a place of the window, in pixels."""
        self.browser.ask("move", page=self.number, x=x, y=y)

    def drag(self, start: Sequence[float], end: Sequence[float]) -> None:
        """Press the mouse at a place of the window, move it to another, and let it go."""
        self.browser.ask("drag", page=self.number, **{"from": [*start], "to": [*end]})

    def tap(self, x: float, y: float) -> None:
        """Touch a place of the window, in pixels; the device needs `hasTouch`."""
        self.browser.ask("tap", page=self.number, x=x, y=y)

    def screenshot(self, path: Path, *, full: bool = False) -> None:
        """Take a picture of what is seen, or of the whole page."""
        self.browser.ask("screenshot", page=self.number, path=str(path), full=full)

    def pdf(self, path: Path) -> None:
        """Print the page into a file."""
        self.browser.ask("pdf", page=self.number, path=str(path))

    def media(self, **wanted: str) -> None:
        """Show the page as to somebody who prefers this `colorScheme`, or in this `media`."""
        self.browser.ask("media", page=self.number, **wanted)

    def size(self, width: int, height: int = 900) -> None:
        """Change the size of the window."""
        self.browser.ask("size", page=self.number, width=width, height=height)

    def axe(self) -> list[dict[str, Any]]:
        """Return what axe-core finds: its rule, how bad it is, and where."""
        return list(self.browser.ask("axe", page=self.number))


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Run the browser for a block; nothing of another run is in it."""
    driver = Path(__file__).with_name("drive.mjs")
    command = ["node", str(driver), str(EXECUTABLE)]
    with subprocess.Popen(  # noqa: S603  # our own script
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Chromium(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
