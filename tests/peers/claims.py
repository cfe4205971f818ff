"""What must hold of an outcome: the claims that several rows make."""

from __future__ import annotations

from dragoman.model.media import Image
from dragoman.model.parts import Text
from tests.peers.rows import Claim, Outcome


def has(*words: str) -> Claim:
    """These are in what is sent."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is None, outcome.error
        for word in words:
            assert word in outcome.text

    return claim


def lacks(*words: str) -> Claim:
    """None of these is in what is sent."""

    def claim(outcome: Outcome) -> None:
        for word in words:
            assert word not in outcome.text

    return claim


def reports(*words: str) -> Claim:
    """A loss or a repair names each of these."""

    def claim(outcome: Outcome) -> None:
        for word in words:
            assert word in outcome.reports

    return claim


def raises(*words: str) -> Claim:
    """It is refused with an error that says this."""

    def claim(outcome: Outcome) -> None:
        assert outcome.error is not None
        for word in words:
            assert word in str(outcome.error)

    return claim


def violates(rule: str) -> Claim:
    """`check` finds it in what was given, in the target's own dialect."""

    def claim(outcome: Outcome) -> None:
        assert rule in {each.rule for each in outcome.found}

    return claim


def reports_nothing(outcome: Outcome) -> None:
    """Nothing is lost and nothing is repaired."""
    assert outcome.reports == ""


def reports_only_ids(outcome: Outcome) -> None:
    """Nothing is lost but the response's id, which Ollama does not have."""
    assert {loss.path for loss in outcome.losses} <= {"id"}
    assert outcome.repairs == ()


def is_valid(outcome: Outcome) -> None:
    """`check` finds no error in the request."""
    assert outcome.error is None, outcome.error
    assert [each for each in outcome.violations if each.severity == "error"] == []


def comes_back(outcome: Outcome) -> None:
    """In its own dialect, a request is sent as it came."""
    if outcome.target == outcome.row.given.dialect:
        assert outcome.body == outcome.row.given.body  # type: ignore[union-attr]
        assert outcome.reports == ""


def shows(*texts: str) -> Claim:
    """The client sees these texts, streamed and whole."""

    def claim(outcome: Outcome) -> None:
        for each in (outcome, outcome.whole):
            if each is not None:
                assert each.error is None, each.error
                assert each.seen is not None
                shown = [part.text for part in each.seen.message.parts if isinstance(part, Text)]
                for text in texts:
                    assert text in "".join(shown)

    return claim


def shows_a_picture(outcome: Outcome) -> None:
    """The client sees an image, or a loss says that its dialect has none."""
    assert outcome.seen is not None
    is_seen = any(isinstance(part, Image) for part in outcome.seen.message.parts)
    assert is_seen or outcome.losses


def is_finished(outcome: Outcome) -> None:
    """The client sees a complete response."""
    assert outcome.error is None, outcome.error
    assert outcome.is_complete


def is_unfinished(outcome: Outcome) -> None:
    """The client is told that the response is not complete."""
    if outcome.is_complete and outcome.error is None:
        assert outcome.seen is not None
        assert outcome.seen.finish is not None
        assert outcome.seen.finish.is_cut_off
