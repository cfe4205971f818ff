"""The matching of results to calls that decoders, inputs and fitting share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, ToolCall
from dragoman.model.messages import make_message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import make_call, make_result
from dragoman.wire.call_ids import CallIds, OpenCalls
from dragoman.wire.fitting import fitted
from dragoman.wire.target import Target

NAMES = st.sampled_from(["f", "g", "h"])
TURNS = st.lists(NAMES, min_size=1, max_size=6)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 9), st.sets(NAMES)),
            st.tuples(st.just("close"), st.integers(0, 9), st.just(frozenset[str]())),
        ),
        max_size=30,
    )
)
def test_the_oldest_open_call_is_found(history: list[tuple[str, int, set[str]]]) -> None:
    """The result equals that of searching a plain list of all open calls."""
    calls = OpenCalls[int]()
    added: list[tuple[int, set[str]]] = []
    closed: set[int] = set()
    for what, call, labels in history:
        if what == "add":
            calls.add(call, *labels)
            added.append((call, labels))
        else:
            calls.close(call)
            closed.add(call)
        for label in ("f", "g", "h", "none"):
            waiting = [one for one, known in added if label in known and one not in closed]
            assert calls.oldest(label) == next(iter(waiting), None)
            assert list(calls.waiting(label)) == waiting
            assert (label in calls) == any(label in known for _, known in added)


def test_an_answered_call_is_removed_everywhere() -> None:
    """A closed call is closed in all indexes that share the set of answered calls."""
    answered: set[str] = set()
    step, repeated = OpenCalls(answered), OpenCalls(answered)
    step.add("call_1", "f", None)
    repeated.add("call_1", "shared")
    step.close("call_1")
    assert repeated.oldest("shared") is step.oldest("f") is step.oldest(None) is None


@given(TURNS, st.randoms(use_true_random=False))
def test_decoders_match_by_name_and_order(names: list[str], chance: object) -> None:
    """Results without ids are matched with the calls of the same tool in order."""
    calls = CallIds()
    made = [calls.add_named_call(name, None)[0] for name in names]
    shuffled = list(names)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    found = [(name, calls.answer_named(name, None)[0]) for name in shuffled]
    for name in set(names):
        own = [call for call, of in zip(made, names, strict=True) if of == name]
        assert [call for of, call in found if of == name] == own


@given(TURNS, st.randoms(use_true_random=False))
def test_fitting_matches_like_decoders(names: list[str], chance: object) -> None:
    """Results with unknown ids are matched with the same calls when a request is fitted."""
    asked = [make_call(f"call_{number}", name, "{}") for number, name in enumerate(names)]
    shuffled = list(enumerate(names))
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    answers = [make_result(f"lost_{n}", str(n), tool_name=name) for n, name in shuffled]
    request = Request(
        messages=(
            Message.user("?"),
            make_message(Role.ASSISTANT, tuple(asked)),
            make_message(Role.TOOL, tuple(answers)),
        )
    )
    done = fitted(request, Target(dialect="any"))
    assert done.losses == ()
    results = done.request.messages[2].tool_results
    given_calls = [
        part for m in done.request.messages for part in m.parts if type(part) is ToolCall
    ]
    assert [result.call_id for result in results] == [call.id for call in given_calls]
    for name in set(names):
        of_name = [r.content for r, c in zip(results, given_calls, strict=True) if c.name == name]
        assert of_name == [str(n) for n, of in shuffled if of == name]
