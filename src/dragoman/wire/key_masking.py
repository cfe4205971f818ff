"""Masks API keys and internal addresses in text from others, before it is stored or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"
_MIN_SECRET = 8  # shorter secrets could be ordinary words, or parts of them
# Keys in the formats of providers, and whatever follows the names of such headers. What stands
# around a match belongs to it, up to whitespace, a quote or a bracket: people name keys themselves.
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|xai|pplx|hf|fw|r8|nvapi|csk|dsk|or|key|api)[-_][A-Za-z0-9*][A-Za-z0-9_*.-]{7,}"
    r"|\bAIza[A-Za-z0-9_*-]{8,}|\bya29\.[A-Za-z0-9_.-]{8,}|\bAKIA[A-Z0-9]{8,}"
)
_TOKEN = re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?")  # a JWT
_NAMED = re.compile(
    r"(?i)\b(bearer|basic|(?:x-)?(?:goog-)?api[-_ ]?key(?: provided)?|authorization"
    r"|access[-_ ]token)"
    r"(\W{1,4}(?:bearer\s+)?)([A-Za-z0-9][A-Za-z0-9+/=_.*-]{7,})"
)
_KEY_LIKE = re.compile(r"[0-9*]")
_WORDS = re.compile(r"[^\s\"'`()\[\]{}<>]+")
_HEAD = re.compile(r"(?:[^=:]*[=:])?")  # a name before the key
_TAIL = re.compile(r"[.,;:!?]*\Z")  # the sentence's
# What names a machine inside a network: an IP address, a name without a public domain, or any name
# with one of the endings that networks use inside. A path and a port belong to it.
_INSIDE = re.compile(
    r"(?:https?://)?(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*\]|localhost"
    r"|(?:[\w-]{1,63}\.){1,8}(?:internal|local|lan|svc|corp|intranet|home\.arpa))\b(?::\d{1,5})?"
    r"(?:/[^\s\"'<>)\],;]*)?|https?://[\w-]{1,63}(?::\d{1,5})?(?![\w.-])(?:/[^\s\"'<>)\],;]*)?"
)


def masked(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with keys masked: the given secrets, and anything that looks like a key.

    >>> masked("Incorrect API key provided: sk-proj-abcdef0123456789. Check it.")
    'Incorrect API key provided: ***. Check it.'
    """
    for secret in sorted(set(secrets), key=len, reverse=True):  # one may be a part of another
        text = _without(text, secret)
    text = _WORDS.sub(_masked_word, _TOKEN.sub(MASK, text))
    return _NAMED.sub(lambda found: f"{found[1]}{found[2]}{_masked_if_key(found, 3)}", text)


def without_addresses(text: str, host: str | None = None) -> str:
    """The text with internal addresses masked, and those at `host`, which may have a port.

    >>> without_addresses("dial tcp 10.0.0.7:11434: connection refused")
    'dial tcp ***: connection refused'
    """
    name = (host or "").partition(":")[0]
    if name:
        at_host = rf"(?i)(?:https?://)?(?<![\w.-]){re.escape(name)}(?::\d{{1,5}})?(?![\w-])(?:/[^\s\"'<>)\],;]*)?"
        text = re.sub(at_host, MASK, text)
    return _INSIDE.sub(MASK, text)


def _without(text: str, secret: str) -> str:
    """The text without a secret; a short one only where it is a word, and looks like a key."""
    if len(secret) >= _MIN_SECRET:
        return text.replace(secret, MASK)
    if not _KEY_LIKE.search(secret):
        return text
    return re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MASK, text)


def _masked_word(found: re.Match[str]) -> str:
    """Mask a word with a key in it, but not the name before the key and the mark behind it."""
    word = found[0]
    start = next((key.start() for key in _KEYS.finditer(word) if _KEY_LIKE.search(key[0])), None)
    if start is None:
        return word
    head, tail = _HEAD.match(word, 0, start), _TAIL.search(word)
    return f"{head[0] if head else ''}{MASK}{tail[0] if tail else ''}"


def _masked_if_key(found: re.Match[str], group: int = 0) -> str:
    """Mask a match with digits or asterisks; `api-version` and `key_not_found` have none."""
    return MASK if _KEY_LIKE.search(found[group]) else found[group]
