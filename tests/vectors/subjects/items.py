"""Which strings may be items, and what becomes of a value in a dictionary and without one."""

from __future__ import annotations

from typing import Any

from hushcount.items import fault_of_item
from hushcount.maths.fingerprints import fingerprints

_SENTENCES = {
    "has more than 4,096 bytes": "too_long",
    "is empty": "empty",
    "begins with a byte order mark": "byte_order_mark",
    "holds a control character": "control_character",
    "holds a lone surrogate": "lone_surrogate",
    "holds a separator of lines": "line_separator",
    "holds a separator of paragraphs": "paragraph_separator",
    "holds a control of direction": "direction_control",
    "holds an invisible character": "invisible_character",
    "is not in Unicode's normal form NFC": "not_normal_form",
}
"""What `items.fault_of_item` says, by the reason's name."""
_TEXTS = (
    "a", "dark-mode", " ", "a b", "~", "é", "größer", "日本語", "😀", "👩\u200d💻", "ن\u200cم", "क\u094d\u200dष",
    "\U0001fae0", "\u1ac1", "\u0338", "\u00a0", "\u3000", "\ue000", "\ufdd0", "\uffff", "\U0010ffff", "ﬁ", "Å",
    "a\u0338", "\ufffd", "", "\ufeff", "\ufeffa", "a\ufeff", "a\n", "\n", "\t", "\r", "a\0b", "\x7f", "\x85",
    "\x9f", "\ud800", "a\udfff", "\udc00\ud800", "a\u2028b", "a\u2029b", "\u202aa", "\u202b", "\u202c",
    "\u202d", "a\u202eb", "\u2066", "\u2067", "\u2068", "\u2069", "\u00ad", "a\u00adb", "\u200b", "\u200ba",
    "\u200c", "a\u200cb", "é\u200c", "é\u200ca", "\u200dé", "\u200eé", "\u200fé", "\u2060", "\u2061", "\u180e",
    "\u061c", "\u034f", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u2800", "\u3164", "\uffa0", "\ufff9",
    "\U000e0001", "\U000e0041", "\U000110bd", "\U0001d173", "e\u0301", "\u212b", "\u2126", "\u1e9b\u0323\u0301",
    "s\u0307\u0323", "\u1100\u1161", "\u0340", "\u0958", "\U0002f800",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "a\U0001f3f4\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007fb",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067", "\U0001f3f4\U000e0068\U000e0069\U000e007f",
    "\U0001f3f3\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "\U000e0000", "\U000e0fff",
    "\ufff0", "\u2065", "1\ufe0f\u20e3", "#\u20e3", "1\ufe0f", "a\ufe0f\u20e3", "\u2764\ufe0f", "\u2764\ufe0e",
    "\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\ufe0f", "\u2764\ufe00", "\U0001f6d3\ufe0f",
    "\U0001faf1\U0001f3fb\u200d\U0001faf2\U0001f3ff", "\U0001f3fb\ufe0f", "\ufe0f", "é\ufe0f", "a\ufe0f",
    "\u845b\U000e0100", "\u845b\U000e0100\U000e0101", "\u845b\ufe00", "é\U000e0100", "\u2229\ufe00",
    "\u1820\u180b", "\u1820\u180f", "\u182d\u180e\u1820", "\u1828\u180b\u180e\u1820", " \u180e\u1820",
    "\u0cb8\u0ccd\u200c", "\u0cb8\u0ccd\u200c a", "\u0d28\u0d4d\u200d", "\u0cb8\u0ccd\u180e",
    "\u0cb8\u0ccd\u200c\u200d", "é\u200c\u200dé", "é\u200d\u3000", "\u3000\u200dé", "\u06dd", "\u0600\u0661",
    "\U00013430", "\U0001bca0", "\u202e\u0301\n", "é\u202e\n", "\ufeff\n",
)  # fmt: skip
_LONG = (
    ("a", 4096), ("é", 2048), ("😀", 1024), ("a", 4097), ("é", 2049), ("日", 1366), ("e\u0301", 1366),
    ("\n", 4097),
)  # fmt: skip


def _entry(text: str, times: int) -> dict[str, Any]:
    whole = text * times
    said = fault_of_item(whole)
    repeated = {} if times == 1 else {"times": times}
    if said is None:
        return {"text": text, **repeated, "fingerprint": str(int(fingerprints([whole])[0]))}
    return {"text": text, **repeated, "reason": _SENTENCES[said]}


def data() -> dict[str, Any]:
    """Return the file's content."""
    made = [_entry(text, times) for text, times in (*((text, 1) for text in _TEXTS), *_LONG)]
    return {
        "subject": "items",
        "about": "Strings that may be items, with their fingerprint in the open domain; `times` repeats the text",
        "accept": [entry for entry in made if "reason" not in entry],
        "refuse": [entry for entry in made if "reason" in entry],
    }
