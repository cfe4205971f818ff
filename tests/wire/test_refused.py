"""Recorded errors: each is classified, and `check` has no false positives."""

from __future__ import annotations

import pytest

from dragoman.errors import ProviderError
from tests.corpus import Corpus
from tests.wire.refused import (
    DOUBTFUL,
    FAULTY,
    REASONS,
    decoded,
    errors_in,
    expected,
    explaining,
    failures,
    matched,
    requests,
)

pytestmark = pytest.mark.corpus


def test_recorded_errors_are_classified(corpus: Corpus) -> None:
    """Every recorded error has the class that its cause requires."""
    wrong = [
        f"{one.row.file}: {type(decoded(one)).__name__}, not {expected(one)}"
        for one in failures(corpus)
        if type(decoded(one)).__name__ != expected(one)
    ]
    assert wrong == []


def test_recorded_errors_quote_nothing(corpus: Corpus) -> None:
    """No provider's message is in our error's text or attributes."""
    for one in failures(corpus):
        error = decoded(one)
        body = one.response_body if isinstance(one.response_body, dict) else {}
        inner = body.get("error", body)
        said = inner if isinstance(inner, str) else inner.get("message")
        shown = f"{error!s} {error!r} {vars(error)}"
        assert isinstance(error, ProviderError)
        assert not said or said == "Forbidden" or str(said) not in shown


def test_accepted_requests_have_no_errors(corpus: Corpus) -> None:
    """`check` finds no errors in requests that any host accepted."""
    wrong = {
        one.row.file: found
        for one in requests(corpus, accepted=True)
        if one.row.file not in FAULTY and (found := errors_in(one))
    }
    assert wrong == {}


def test_refused_requests_are_explained(corpus: Corpus) -> None:
    """A recorded 400 breaks a rule, or there is a documented reason why not."""
    unexplained = [
        one.row.file
        for one in requests(corpus, accepted=False)
        if not explaining(one) and matched(one, REASONS) is None
    ]
    assert unexplained == []


@pytest.mark.extended
def test_the_lists_have_no_stale_entries(corpus: Corpus) -> None:
    """Every exception, doubt and reason still has its recording."""
    accepted = {one.row.file for one in requests(corpus, accepted=True) if errors_in(one)}
    assert accepted >= FAULTY
    doubts = {matched(one, DOUBTFUL) for one in failures(corpus)}
    assert doubts >= set(DOUBTFUL.values())
    reasons = {matched(one, REASONS) for one in requests(corpus, accepted=False)}
    assert reasons >= set(REASONS.values())
