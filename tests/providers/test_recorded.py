"""The proof of flags and families: what a provider accepted from one of its models' users."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import dragoman
from tests.corpus import Corpus
from tests.providers.recorded import accepted
from tests.wire.recorded import normal

pytestmark = pytest.mark.corpus

DIALECTS = dragoman.dialects()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requests_that_a_provider_accepted_are_unchanged(corpus: Corpus, dialect: str) -> None:
    """Encoded for the provider and model it was sent to, a request is the same, without losses."""
    changed = Counter[str]()
    total = 0
    for body, request, target in accepted(corpus, dialect):
        encoded = body.dialect.encode_request(request, target)
        total += 1
        if normal(encoded.body) != normal(body.wire) or encoded.losses:
            changed[f"{target.provider} {body.recording.row.file}"] += 1
    assert total > 0
    assert changed == Counter()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requests_that_a_provider_accepted_pass_the_check(corpus: Corpus, dialect: str) -> None:
    """`check` with the same target reports no error."""
    found = []
    for body, _, target in accepted(corpus, dialect):
        speaker: Any = body.dialect
        headers = body.recording.request_headers or None
        found += [
            (target.provider, body.recording.row.file, one.rule, one.path)
            for one in speaker.check(body.wire, path=body.path, headers=headers, target=target)
            if one.severity == "error"
        ]
    assert found == []
