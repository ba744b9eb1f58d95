"""Put style and scripts from separate files into a page, whose content security policy allows nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

SCRIPTS = (
    "svg", "state", "time", "pointing", "tables", "files", "intervals", "columns", "dots", "parts", "renewal", "data",
    "lines", "search", "trend", "drill", "tabs", "page",
)  # fmt: skip
"""Names of the script modules; each module comes after the modules that it imports."""
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const) ([A-Za-z_]+))", re.MULTILINE)


@cache
def style() -> str:
    """Return the style sheet."""
    return _text("style.css")


@cache
def script() -> str:
    """Return all modules as one script, in which each module but the last is a function that returns its exports."""
    return "".join(_joined(name, last=name == SCRIPTS[-1]) for name in SCRIPTS)


def policy(served: bool = False) -> str:
    """Return the content security policy: this style, this script, and pictures in the page.

    Args:
        served: whether the page may request from its own server, and send a form there; if false, it requests nothing.
    """
    own = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; script-src {_source(script())}; style-src {_source(style())}; img-src data:; "
        f"connect-src {own}; base-uri 'none'; form-action {own}"
    )


def _joined(name: str, *, last: bool) -> str:
    text = _IMPORT.sub(r"const {\1} = of_\2;\n", _text(f"{name}.js"))
    if last:
        return text
    exported = ", ".join(_EXPORT.findall(text))
    return f"const of_{name} = (() => {{\n{_EXPORT.sub('', text)}return {{ {exported} }};\n}})();\n"


def _text(name: str) -> str:
    return files("pipelines.pages").joinpath("static").joinpath(name).read_text(encoding="utf-8")


def _source(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
