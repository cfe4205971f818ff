"""A response, and the same response in the next request's history, decode to the same message."""

from __future__ import annotations

import pytest

import dragoman
from tests.corpus import Corpus
from tests.wire.replays import replays

_FEW = {"ollama": 10}  # conversations in the recordings


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_faithfully_replayed_answers_are_equal(corpus: Corpus, dialect: str) -> None:
    """Responses and histories decode to equal messages; few clients change what they got."""
    found = list(replays(corpus, dialect))
    faithful = [replay for replay in found if replay.is_faithful]
    rewritten = [r.file for r in found if r.change == "rewritten or cut by the client"]
    assert len(found) > _FEW.get(dialect, 50)
    assert len(faithful) >= 0.7 * len(found)
    assert len(rewritten) <= 0.1 * len(found)
