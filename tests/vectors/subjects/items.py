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
    "a",
    "dark-mode",
    " ",
    "a b",
    "~",
    "é",
    "größer",
    "日本語",
    "😀",
    "👩\u200d💻",
    "ن\u200cم",
    "क\u094d\u200dष",
    "\U0001fae0",
    "\u1ac1",
    "\u0338",
    "\u00a0",
    "\u3000",
    "\ue000",
    "\ufdd0",
    "\uffff",
    "\U0010ffff",
    "ﬁ",
    "Å",
    "a\u0338",
    "\ufffd",
    "",
    "\ufeff",
    "\ufeffa",
    "a\ufeff",
    "a\n",
    "\n",
    "\t",
    "\r",
    "a\0b",
    "\x7f",
    "\x85",
    "\x9f",
    "\ud800",
    "a\udfff",
    "\udc00\ud800",
    "a\u2028b",
    "a\u2029b",
    "\u202aa",
    "\u202b",
    "\u202c",
    "\u202d",
    "a\u202eb",
    "\u2066",
    "\u2067",
    "\u2068",
    "\u2069",
    "\u00ad",
    "a\u00adb",
    "\u200b",
    "\u200ba",
    "\u200c",
    "a\u200cb",
    "é\u200c",
    "é\u200ca",
    "\u200dé",
    "\u200eé",
    "\u200fé",
    "\u2060",
    "\u2061",
    "\u180e",
    "\u061c",
    "\u034f",
    "\u115f",
    "\u1160",
    "\u17b4",
    "\u17b5",
    "\u2800",
    "\u3164",
    "\uffa0",
    "\ufff9",
    "\U000e0001",
    "\U000e0041",
    "\U000110bd",
    "\U0001d173",
    "e\u0301",
    "\u212b",
    "\u2126",
    "\u1e9b\u0323\u0301",
    "s\u0307\u0323",
    "\u1100\u1161",
    "\u0340",
    "\u0958",
    "\U0002f800",
    "\u202e\u0301\n",
    "é\u202e\n",
    "\ufeff\n",
)
_LONG = (
    ("a", 4096),
    ("é", 2048),
    ("😀", 1024),
    ("a", 4097),
    ("é", 2049),
    ("日", 1366),
    ("e\u0301", 1366),
    ("\n", 4097),
)


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
