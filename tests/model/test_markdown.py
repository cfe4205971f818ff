"""Messages in notebooks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman import ConversationHistory, Image, Message, Messages, Thinking, ToolCall, ToolResult
from dragoman.model.markdown import markdown


def test_a_conversation_is_readable() -> None:
    """The output has roles, texts, calls and results."""
    call = ToolCall("c1", "weather", raw='{"city": "Basel"}')
    shown = Messages(
        Message.user("Will it rain?", Image.from_bytes(b"\x89PNG\r\n\x1a\n")),
        Message.assistant(Thinking("I should look."), call),
        Message.tool("c1", "It will."),
        Message.tool(ToolResult("c1", data={"rain": True})),
    )._repr_markdown_()
    for piece in ("**user**", "> Will it rain?", "image/png", "> I should look.", "`weather`",
                  '{"city": "Basel"}', "It will.", '{"rain":true}'):  # fmt: skip
        assert piece in shown


@given(st.text(alphabet=st.sampled_from("<>&`~*_[]()#!|\n\r\u2028 ab-+.1")))
def test_texts_bring_no_markup_of_their_own(text: str) -> None:
    """No HTML, and nothing outside the quote or the fence."""
    shown = markdown([Message.user(text)])
    assert "<" not in shown
    said = shown.removeprefix("**user**\n\n")
    assert all(line.startswith("> ") for line in said.split("\n"))
    fenced = markdown([Message.tool("c", text)]).split("\n")
    fence = fenced[4]
    assert set(fence) == {"`"}
    assert fenced[-1] == fence
    assert fence not in fenced[5:-1]


def test_a_history_shows_its_messages() -> None:
    """As the messages themselves do."""
    history = ConversationHistory(["Hi"], policy="lenient")
    assert history._repr_markdown_() == history.messages._repr_markdown_()
    assert "Hi" in history._repr_markdown_()
