"""Show text from strangers on a page as plain text on one line that does not change the direction of other text."""

from __future__ import annotations

import html
import unicodedata

_TURNS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
"""Characters that change the direction of the text after them, and the byte order mark."""
_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """Return a text with codes in place of control characters, line separators and characters that change direction."""
    return "".join(_code(letter) if _is_unseen(letter) else letter for letter in text)


def sentence(clause: object) -> str:
    """Return a clause, such as an error, as a sentence."""
    text = str(clause)
    return f"{text[:1].upper()}{text[1:]}."


def escaped(text: str) -> str:
    """Return a text as HTML that is also safe inside an attribute."""
    return html.escape(visible(text))


def isolated(text: str) -> str:
    """Return a text as HTML that does not change the direction of the text beside it."""
    return f"<bdi>{escaped(text)}</bdi>"


def _is_unseen(letter: str) -> bool:
    return letter in _TURNS or (not letter.isprintable() and unicodedata.category(letter) in _UNSEEN)


def _code(letter: str) -> str:
    return letter.encode("unicode_escape").decode()
