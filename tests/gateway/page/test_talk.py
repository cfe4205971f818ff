"""The Talk API: streamed events, stored messages, and disconnects at any time."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import InvalidRequest, RateLimited, StreamInterrupted
from dragoman.gateway.records import RequestRecord
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from tests.gateway.page.pages import Hangs, TestPage, begun, calls, of_type, page_at, url_of


def eventually(condition: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError


def test_an_answer_comes_as_events_and_is_stored(page: TestPage) -> None:
    """Events arrive in order: the user's message, the request, the parts, the end."""
    page.script(Message.assistant(Thinking("Let me see."), Text("By the river.")))
    events = page.talk("Where is the Old Bridge?")
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["run", "message", "sent"]
    assert kinds[-1] == "done"
    assert [event["kind"] for event in of_type(events, "part")] == ["thinking", "text"]
    said: dict[int, str] = {}
    for event in of_type(events, "delta"):
        said[event["index"]] = said.get(event["index"], "") + event["text"]
    assert said == {0: "Let me see.", 1: "By the river."}
    view = events[-1]["view"]
    assert [part["kind"] for part in view["parts"]] == ["thinking", "text"]
    assert events[-1]["usage"]["output"] > 0
    id = events[0]["conversation"]
    assert page.texts(id) == ["Where is the Old Bridge?", "Let me see.By the river."]
    stored = page.read(f"conversations/{id}")["messages"]
    assert [each["id"] for each in stored] == [events[1]["view"]["id"], view["id"]]


def test_a_conversation_goes_on_with_another_model(page: TestPage) -> None:
    """The second model receives the first model's messages."""
    model = page.script("One.")
    id = page.talk("Count.")[0]["conversation"]
    page.talk("Go on.", conversation=id, model="echo:")
    model = page.script("Three.")
    page.talk("And?", conversation=id)
    assert [m.text for m in model.requests[0].messages] == [
        "Count.",
        "One.",
        "Go on.",
        "Go on.",
        "And?",
    ]


def test_instructions_and_settings_reach_the_model(page: TestPage) -> None:
    """System prompt, temperature, token limit and thinking reach the model."""
    model = page.script("Yes.")
    page.talk(
        "Hm?",
        system="Be brief.",
        settings={"temperature": 0.5, "max_tokens": 70, "thinking": "low"},
    )
    request = model.requests[0]
    assert [part.text for part in request.system if isinstance(part, Text)] == ["Be brief."]
    assert (request.sampling.temperature, request.sampling.max_tokens) == (0.5, 70)
    assert request.thinking is not None


def test_an_edit_is_a_branch_and_both_ways_are_kept(page: TestPage) -> None:
    """The edited message and the original are siblings of each other."""
    page.script("A river.", "A lake.")
    events = page.talk("What is the Rhine?")
    id, first = events[0]["conversation"], events[1]["view"]["id"]
    events = page.talk("What is Lake Zug?", conversation=id, after="")
    assert events[0]["branch"] == 1
    assert (events[1]["view"]["siblings"], events[1]["view"]["sibling"]) == ([0, 1], 1)
    assert page.texts(id) == ["What is Lake Zug?", "A lake."]
    assert page.texts(id, branch=0) == ["What is the Rhine?", "A river."]
    before = page.read(f"conversations/{id}", branch=0)["messages"]
    assert before[0]["id"] == first
    assert (before[0]["siblings"], before[0]["sibling"]) == ([0, 1], 0)
    assert "siblings" not in before[1]


def test_a_retry_is_another_answer_to_the_same(page: TestPage) -> None:
    """Three responses to one message: each is a branch, with the same request."""
    model = page.script("One.", "Two.", "Three.")
    events = page.talk("Say a number.")
    id, asked = events[0]["conversation"], events[1]["view"]["id"]
    for _ in range(2):
        events = page.talk(conversation=id, retry=True, after=asked)
    assert not of_type(events, "message")
    assert [len(request.messages) for request in model.requests] == [1, 1, 1]
    assert (events[-1]["view"]["siblings"], events[-1]["view"]["sibling"]) == ([0, 1, 2], 2)
    assert [page.texts(id, branch=n)[-1] for n in range(3)] == ["One.", "Two.", "Three."]


def test_a_branch_of_a_branch_has_its_own_siblings(page: TestPage) -> None:
    """Editing within a branch and editing its first message give different siblings."""
    page.script(*[f"Answer {n}." for n in range(6)])
    events = page.talk("a")
    id, first_answer = events[0]["conversation"], events[-1]["view"]["id"]
    page.talk("b", conversation=id)
    page.talk("b2", conversation=id, after=first_answer)  # branch 1
    events = page.talk("b3", conversation=id, after=first_answer)  # branch 2
    assert events[1]["view"]["siblings"] == [0, 1, 2]
    events = page.talk("c", conversation=id, after=events[-1]["view"]["id"])  # its end: no branch
    assert events[0]["branch"] == 2
    found = page.read(f"conversations/{id}")["messages"]
    assert [each.get("siblings") for each in found] == [None, None, [0, 1, 2], None, None, None]


def test_tools_wait_for_approval(page: TestPage) -> None:
    """One call is approved, one refused with a reason; the model receives both results."""
    model = page.script(calls(("calculate", {"expression": "6*7"}), ("now", {})), "It is 42.")
    with page.talking("What is 6*7?", tools=True) as events:
        seen: list[dict[str, Any]] = []
        for event in events:
            seen.append(event)
            if event["type"] == "approval":
                run = seen[0]["run"]
                allow = event["name"] == "calculate"
                body = {"call_id": event["call_id"], "allow": allow, "reason": "not now"}
                page.write("POST", f"talk/{run}/approve", body)
    assert [event["name"] for event in of_type(seen, "approval")] == ["calculate", "now"]
    assert [event["call"]["name"] for event in of_type(seen, "call")] == ["calculate", "now"]
    results = [part for event in of_type(seen, "result") for part in event["view"]["parts"]]
    assert {each["name"]: each["is_error"] for each in results} == {"calculate": False, "now": True}
    assert "42" in results[0]["text"]
    assert "not now" in results[1]["text"]
    assert len(model.requests) == 2
    assert seen[-1]["view"]["parts"][0]["text"] == "It is 42."


def test_a_run_that_waits_for_approval_can_be_stopped(page: TestPage) -> None:
    """The call gets a result that says it was stopped, and the conversation continues."""
    page.script(calls(("now", {})), "Hello again.")
    with page.talking("What time is it?", tools=True) as events:
        seen: list[dict[str, Any]] = []
        for event in events:
            seen.append(event)
            if event["type"] == "approval":
                page.write("POST", f"talk/{seen[0]['run']}/stop")
    assert seen[-1]["type"] == "done"
    assert seen[-1]["view"]["finish"] == "stopped"
    id = seen[0]["conversation"]
    found = page.read(f"conversations/{id}")["messages"]
    assert [each["role"] for each in found] == ["user", "assistant", "tool"]
    assert found[-1]["parts"][0]["is_error"]
    assert (
        page.talk("Never mind.", conversation=id)[-1]["view"]["parts"][0]["text"] == "Hello again."
    )


def test_decisions_that_nobody_waits_for_are_refused(page: TestPage) -> None:
    """Another run's id, another call's id and a body without a decision are errors."""
    page.script(calls(("now", {})), "Done.")
    assert page.ask("POST", f"talk/{'0' * 32}/approve", json={"allow": True}).status_code == 404
    assert page.ask("POST", f"talk/{'0' * 32}/stop", json={}).status_code == 404
    run = ""
    with page.talking("What time is it?", tools=True) as events:
        for event in events:
            if event["type"] == "run":
                run = event["run"]
            if event["type"] == "approval":
                path = f"talk/{run}/approve"
                assert (
                    page.ask("POST", path, json={"call_id": "x", "allow": True}).status_code == 404
                )
                assert page.ask("POST", path, json={"call_id": event["call_id"]}).status_code == 400
                page.write("POST", path, {"call_id": event["call_id"], "allow": True})


def test_a_stop_keeps_what_arrived(page: TestPage) -> None:
    """The partial answer is stored, and marked as stopped."""
    page.script(Hangs("On and"))
    with page.talking("Talk.") as events:
        seen: list[dict[str, Any]] = []
        for event in events:
            seen.append(event)
            if event["type"] == "delta":
                page.write("POST", f"talk/{seen[0]['run']}/stop")
    assert seen[-1]["type"] == "done"
    assert seen[-1]["view"]["finish"] == "stopped"
    found = page.read(f"conversations/{seen[0]['conversation']}")["messages"]
    assert found[-1]["finish"] == "stopped"
    assert found[-1]["parts"][0]["text"] == "On and"


def test_a_client_that_is_killed_in_mid_stream_loses_nothing(page: TestPage) -> None:
    """The answer goes on without a reader; the next one gets all of it, and can stop it."""
    page.script(Hangs("Half an answer"), "Go on.")
    with page.talking("Talk.") as events:
        seen = [next(events)]
        while seen[-1]["type"] != "delta":
            seen.append(next(events))
    id, run = seen[0]["conversation"], seen[0]["run"]
    opened = page.read(f"conversations/{id}")
    assert (opened["run"], [each["role"] for each in opened["messages"]]) == (run, ["user"])
    with page.following(run) as events:
        again = [next(events) for _ in seen]
        assert again == seen
        page.write("POST", f"talk/{run}/stop")
        assert [event["type"] for event in events] == ["done"]
    eventually(lambda: page.ask("GET", f"talk/{run}").status_code == 404)
    opened = page.read(f"conversations/{id}")
    assert (opened["run"], opened["messages"][-1]["finish"]) == (None, "stopped")
    assert opened["messages"][-1]["parts"][0]["text"] == "Half an answer"
    assert page.talk("Go on.", conversation=id)[-1]["type"] == "done"


def test_an_answer_that_nobody_reads_is_completed(page: TestPage) -> None:
    """The reader goes away once its message is stored; the whole answer is stored."""
    page.script("All of it.")
    with page.talking("Talk.") as events:
        id = next(events)["conversation"]
        assert next(events)["type"] == "message"
    eventually(lambda: page.read(f"conversations/{id}")["run"] is None)
    found = page.read(f"conversations/{id}")["messages"]
    assert [(each["role"], each["finish"]) for each in found] == [
        ("user", None),
        ("assistant", "stop"),
    ]


def test_a_decision_is_told_to_every_reader(page: TestPage) -> None:
    """A reader that comes after an approval gets the request for it and the decision."""
    page.script(calls(("calculate", {"expression": "6*7"})), Hangs("It is"))
    with page.talking("What is 6*7?", tools=True) as events:
        run = next(events)["run"]
        asked = next(event for event in events if event["type"] == "approval")
    body = {"call_id": asked["call_id"], "allow": True}
    page.write("POST", f"talk/{run}/approve", body)
    with page.following(run) as events:
        seen = [next(events)]
        while seen[-1].get("text") != "It is":
            seen.append(next(events))
        page.write("POST", f"talk/{run}/stop")
    order = [each["type"] for each in seen if each["type"] in {"approval", "decided", "result"}]
    assert order == ["approval", "decided", "result"]


def test_a_model_that_breaks_off_leaves_what_it_said(page: TestPage) -> None:
    """The page gets the error; the received part is stored and marked as failed."""
    page.script([*begun("Half"), StreamInterrupted("the stream broke off")], RateLimited("later"))
    events = page.talk("Talk.")
    assert events[-1]["type"] == "error"
    assert events[-1]["kind"] == "StreamInterrupted"
    id = events[0]["conversation"]
    found = page.read(f"conversations/{id}")["messages"]
    assert (found[-1]["finish"], found[-1]["parts"][0]["text"]) == ("error", "Half")
    events = page.talk("Again.", conversation=id)
    assert (events[-1]["type"], events[-1]["kind"]) == ("error", "RateLimited")
    assert page.texts(id) == ["Talk.", "Half", "Again."]


def test_the_page_is_told_why_a_provider_refused(page: TestPage) -> None:
    """In a field of its own, also about the account; without a sentence of the provider, none."""
    page.script(InvalidRequest("invalid (status 400)", detail="gemma does not support tools"))
    refused = page.talk("Talk.")[-1]
    assert (refused["message"], refused["detail"]) == (
        "invalid (status 400)", "gemma does not support tools",
    )  # fmt: skip
    page.script(RateLimited("later", detail="Acme is out of tokens"))
    assert page.talk("Again.")[-1]["detail"] == "Acme is out of tokens"
    page.script(RateLimited("later"))
    assert "detail" not in page.talk("Again.")[-1]


def test_two_tabs_on_one_branch_do_not_talk_across_each_other(page: TestPage) -> None:
    """The second request conflicts with the running one; on another branch it succeeds."""
    page.script("Hello.", Hangs("Slow"), "Beside it.")
    events = page.talk("Hi.")
    id, first = events[0]["conversation"], events[1]["view"]["id"]
    with page.talking("Slowly.", conversation=id, branch=0) as one:
        seen = [next(one)]
        while seen[-1]["type"] != "delta":
            seen.append(next(one))
        body = {"model": "scripted:", "text": "Me too.", "conversation": id, "branch": 0}
        refused = page.ask("POST", "talk", json=body)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "Conflict")
        beside = page.talk("Another way.", conversation=id, branch=0, after=first)
        assert beside[-1]["type"] == "done"
        page.write("POST", f"talk/{seen[0]['run']}/stop")
        assert list(one)[-1]["type"] == "done"
    assert page.texts(id, branch=0) == ["Hi.", "Hello.", "Slowly.", "Slow"]
    assert page.texts(id, branch=1) == ["Hi.", "Another way.", "Beside it."]


def test_deleting_a_conversation_stops_its_answer(page: TestPage) -> None:
    """A conversation deleted during a response stays deleted."""
    page.script(Hangs("Slow"))
    with page.talking("Slowly.") as events:
        seen = [next(events)]
        while seen[-1]["type"] != "delta":
            seen.append(next(events))
        id = seen[0]["conversation"]
        assert page.write("DELETE", f"conversations/{id}") == {"deleted": 1}
        list(events)
    assert page.ask("GET", f"conversations/{id}").status_code == 404


def test_attachments_go_along_and_can_be_seen_again(page: TestPage) -> None:
    """An image, an audio file and a text file, each typed by its content."""
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
    sound = base64.b64encode(b"fLaC" + b"\0" * 20).decode()
    note = base64.b64encode(b"Buy milk.").decode()
    model = page.script("I see.")
    events = page.talk("Look.", attachments=[
        {"name": "../../p.png", "mime": "text/html", "data": picture},
        {"name": "s.flac", "mime": "audio/flac", "data": sound},
        {"name": "note.txt", "mime": "text/plain", "data": note},
    ])  # fmt: skip
    parts = events[1]["view"]["parts"]
    assert [part["kind"] for part in parts] == ["image", "audio", "file", "text"]
    assert [part.get("name") for part in parts[:3]] == ["p.png", "s.flac", "note.txt"]
    assert parts[0]["mime"] == "image/png"
    answers = [page.ask("GET", part["url"]) for part in parts[:3]]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert answers[0].headers["content-type"] == "image/png"
    assert answers[2].content == b"Buy milk."
    assert "Buy milk." in model.requests[0].messages[-1].text
    beyond = parts[0]["url"].rpartition("/")[0]
    for place in ("9", "-1", "3", "0.0", "x", "99999999"):
        assert page.ask("GET", f"{beyond}/{place}").status_code == 404


def test_media_never_come_as_a_page(page: TestPage) -> None:
    """A file with markup is served as a download, whatever its claimed type."""
    markup = base64.b64encode(b"<svg onload=alert(1)>\0</svg>").decode()
    page.script("Hm.")
    events = page.talk(
        "Look.", attachments=[{"name": "a.svg", "mime": "text/html", "data": markup}]
    )
    answer = page.ask("GET", events[1]["view"]["parts"][0]["url"])
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


def test_too_many_attachments_are_refused(page: TestPage) -> None:
    """More attachments than the maximum give a 413."""
    body = {"model": "echo:", "text": "x", "attachments": [{"name": "x", "data": "eA=="}] * 21}
    assert page.ask("POST", "talk", json=body).status_code == 413


def test_an_unknown_model_or_conversation_makes_nothing(page: TestPage) -> None:
    """The request is refused before anything is stored."""
    before = page.read("conversations")["total"]
    for body in (
        {"model": "no-such"},
        {"conversation": "0" * 40},
        {"after": "msg_x", "conversation": "x"},
    ):
        answer = page.ask("POST", "talk", json={"model": "echo:", "text": "x", **body})
        assert answer.status_code == 404
    assert page.read("conversations")["total"] == before


def test_an_answer_is_counted_as_any_other(page: TestPage) -> None:
    """Observers get the model, tokens and time; a stopped run is recorded as left."""
    run, records = "", list[RequestRecord]()
    page.gateway.observers.append(records.append)
    try:
        page.script("One.", RateLimited("later", status=429), Hangs("Half"))
        id = page.talk("Count.")[0]["conversation"]
        page.talk("Again.", conversation=id)
        with page.talking("Slowly.", conversation=id) as events:
            for event in events:
                if event["type"] == "run":
                    run = event["run"]
                if event["type"] == "delta":
                    page.write("POST", f"talk/{run}/stop")
    finally:
        page.gateway.observers.remove(records.append)
    found = [each for each in records if each.kind == "talk"]
    assert [each.status for each in found] == [200, 429, 499]
    assert [each.error for each in found] == [None, "RateLimited", None]
    assert found[0].usage is not None
    assert found[0].usage.output > 0
    assert found[0].front == "page"


def test_without_a_store_this_machines_own_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On loopback, the conversations of `dragoman chat` are there without any configuration."""
    monkeypatch.setenv("DRAGOMAN_HISTORY", f"sqlite:///{tmp_path}/own.db")
    with page_at(None) as page:
        assert page.read("info")["has_history"]
        id = page.talk("Hello.", model="echo:")[0]["conversation"]
    with page_at(None) as page:
        assert page.texts(id) == ["Hello.", "Hello."]
    with page_at(None, host="0.0.0.0") as page:  # noqa: S104 - it is told so, and listens nowhere
        assert not page.read("info")["has_history"]
        assert page.read("conversations")["items"] == []
        other = page.talk("Hello.", model="echo:")[0]["conversation"]
        assert page.texts(other) == ["Hello.", "Hello."]


def test_another_worker_shows_a_run_that_goes_on(tmp_path: Path) -> None:
    """Two gateways share a store: an answer of one is followed, and stopped, at the other."""
    url = url_of("sqlite", tmp_path)
    with page_at(url, workers=2) as one, page_at(url, workers=2) as other:
        one.script(Hangs("Slow words"), "Done")
        with one.talking("Slowly.") as events:
            seen = [next(events)]
            while seen[-1]["type"] != "delta":
                seen.append(next(events))
        id, run = seen[0]["conversation"], seen[0]["run"]
        assert other.read(f"conversations/{id}")["run"] == run
        body = {"model": "echo:", "text": "Me too.", "conversation": id}
        assert other.ask("POST", "talk", json=body).status_code == 409
        with other.following(run) as events:
            assert [next(events) for _ in seen] == seen
            other.write("POST", f"talk/{run}/stop")
            list(events)
        eventually(lambda: other.read(f"conversations/{id}")["run"] is None)
        assert other.texts(id) == ["Slowly.", "Slow words"]
        assert len(other.read("conversations")["items"]) == 1


def test_a_conversation_is_deleted_while_another_worker_answers(tmp_path: Path) -> None:
    """Its run is stopped first, on whichever branch it is; nothing of it comes back."""
    url = url_of("sqlite", tmp_path)
    with page_at(url, workers=2) as one, page_at(url, workers=2) as other:
        id = one.talk("Hello.", model="echo:")[0]["conversation"]
        one.script(Hangs("Slow words"))
        with one.talking("Otherwise.", conversation=id, after="") as events:
            while next(events)["type"] != "delta":
                pass
            assert other.write("DELETE", f"conversations/{id}") == {"deleted": 1}
            assert [event["type"] for event in events][-1] == "done"
        for page in (one, other):
            assert page.read("conversations")["items"] == []


def test_what_is_decided_at_another_worker_reaches_the_run(tmp_path: Path) -> None:
    """Two gateways share a store: decisions sent to one reach the run in the other."""
    url, path = url_of("sqlite", tmp_path), ""
    with page_at(url, workers=2) as one, page_at(url, workers=2) as other:
        one.script(calls(("calculate", {"expression": "6*7"})), Hangs("It is"))
        with one.talking("What is 6*7?", tools=True) as events:
            seen: list[dict[str, Any]] = []
            for event in events:
                seen.append(event)
                path = f"talk/{seen[0]['run']}"
                if event["type"] == "approval":
                    body = {"call_id": event["call_id"], "allow": True}
                    other.write("POST", f"{path}/approve", body)
                if event["type"] == "delta" and event["text"] == "It is":
                    other.write("POST", f"{path}/stop")
        assert of_type(seen, "result")[0]["view"]["parts"][0]["text"] == "42"
        assert (seen[-1]["type"], seen[-1]["view"]["finish"]) == ("done", "stopped")
        eventually(lambda: other.ask("POST", f"{path}/stop", json={}).status_code == 404)
        assert len(other.read("conversations")["items"]) == 1
