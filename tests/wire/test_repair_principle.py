"""The repair principle for named targets: only observed refusals are repaired.

Two invariants, on the examples of the rules and on recordings: a body that breaks no rule is sent
unchanged, and every change is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.errors import WireError
from dragoman.providers.registry import provider_names
from dragoman.wire.encoded import Encoded
from dragoman.wire.target import Target
from dragoman.wire.violations import Rule
from tests.corpus import Corpus
from tests.wire.hosts import target_of
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY, normal
from tests.wire.rulebook import Book, Case
from tests.wire.test_rules import BOOKS

pytestmark = pytest.mark.whole

MODELS = {
    "openai": ("gpt-4o", "gpt-5"),
    "anthropic": ("claude-3-5-haiku-latest", "claude-sonnet-4-5", "claude-opus-4-8"),
    "google": ("gemini-2.5-flash", "gemini-3-pro-preview"),
    "deepseek": ("deepseek-chat", "deepseek-reasoner"),
}
"""Models whose targets differ; of other providers, any name will do."""


def targets(dialect: str) -> Iterator[Target]:
    """The targets of all providers that speak a dialect."""
    for name in provider_names():
        provider = dragoman.provider(name)
        if dialect in provider.dialects and name != "vertex":  # it has the model in the path
            for model in MODELS.get(name, ("m",)):
                yield provider.target(model, dialect=dialect)


def sent(body: Any, dialect: str, target: Target | None) -> Encoded:
    """A body, decoded and encoded in its own dialect."""
    speaker = dragoman.dialect(dialect)
    return speaker.encode_request(speaker.decode_request(body), target)


def is_same(encoded: Encoded, body: Any) -> bool:
    """Whether a body is sent unchanged."""
    return bool(normal(json.loads(encoded.to_bytes())) == normal(json.loads(json.dumps(body))))


def cases() -> Iterator[tuple[Book, Rule[Any], Case]]:
    """Each rule with the bodies that break it."""
    for book in BOOKS:
        rules = {rule.find.__name__: rule for rule in book.rules}
        for case in book.cases:
            yield book, rules[case.name], case


@pytest.mark.parametrize(("book", "rule", "case"), [
    pytest.param(book, rule, case, id=f"{book.dialect}-{case.name}") for book, rule, case in cases()
])  # fmt: skip
def test_nothing_is_changed_without_an_observed_refusal(
    book: Book, rule: Rule[Any], case: Case
) -> None:
    """If a body breaks no rule with evidence for this host, it is sent unchanged."""
    for body in (case.wrong, case.right):
        for target in (None, *targets(book.dialect)):
            try:
                encoded = sent(body, book.dialect, target)
            except WireError:  # its messages are no list
                continue
            broken = {found.rule for found in book.check(body, target) if target is not None}
            if not any(
                each.number in broken
                and each.flags
                and (each.permits_repair(target) or target.provider is None)
                for each in book.rules
                if target is not None
            ):
                assert is_same(encoded, body), (rule, target)
            if not is_same(encoded, body):
                assert encoded.repairs or encoded.losses, (rule, target)


def repairable() -> list[Any]:
    """The rules whose violations are repaired for some target, with their bodies."""
    found: dict[tuple[str, str], Any] = {}
    for book, rule, case in cases():
        if rule.refused_by and rule.flags and rule.severity == "error":
            key = (book.dialect, case.name)
            found.setdefault(key, (book, rule, []))[2].append(case)
    return [pytest.param(*value, id="-".join(key)) for key, value in found.items()]


@pytest.mark.parametrize(("book", "rule", "rows"), repairable())
def test_observed_refusals_are_repaired(book: Book, rule: Rule[Any], rows: list[Case]) -> None:
    """For that host, violating bodies are repaired, and the repair is reported.

    Odd values that the model can't represent (a limit that is a text) may stay unchanged.
    """
    mended = 0
    for case in rows:
        meant = book.target(case.name) or dragoman.dialect(book.dialect).target
        for host in (meant.replace(provider=rule.refused_by[0]), *targets(book.dialect)):
            if host.provider not in rule.refused_by:
                continue
            encoded = sent(case.wrong, book.dialect, host)
            after = [found.path for found in book.check(encoded.body, host)]
            mended += case.path not in after
            assert is_same(encoded, case.wrong) or encoded.repairs or encoded.losses
    assert mended


@pytest.mark.corpus
@pytest.mark.parametrize("name", dragoman.dialects())
def test_recorded_requests_keep_both_invariants_at_their_own_host(
    corpus: Corpus, name: str
) -> None:
    """Named or not: no error is no change, and every change is reported."""
    speaker: Any = dragoman.dialect(name)
    count = 0
    for recording in corpus.select(provider_api=SPOKEN_BY[name]):
        path, body = recording.request_path, recording.request_body
        is_one = ENDPOINTS[name].search(path.partition("?")[0]) and isinstance(body, dict)
        if not is_one or not isinstance(body.get(speaker.messages_field), (list, str)):
            continue
        target = target_of(recording, name)
        encoded = speaker.encode_request(speaker.decode_request(body, path=path), target)
        is_equal = normal(json.loads(encoded.to_bytes())) == normal(body)
        errors = [
            found for found in speaker.check(body, path=path, target=target)
            if found.severity == "error"
        ]  # fmt: skip
        if not errors:
            assert is_equal, recording.row.file
        assert is_equal or encoded.repairs or encoded.losses, recording.row.file
        count += 1
    assert count
