"""A conversation of thousands of messages: what is in the document, and what stays in its place."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.gateway.page.api import static_files
from tests.gateway.page.browsing import Looking, until
from tests.gateway.page.mock_state import Mock
from tests.gateway.page.test_using import PHONE

pytestmark = pytest.mark.slow

MOST = 130
"""Messages in the document: what is near the viewport, in a conversation of short ones."""

_COUNT = "document.querySelectorAll('.message').length"
_FRAMES = """async (count) => {
  for (let one = 0; one < count; one += 1) await new Promise(requestAnimationFrame);
}"""
_IN_VIEW = """() => {
  const { top, bottom } = document.querySelector('.thread').getBoundingClientRect();
  return [...document.querySelectorAll('.thread .message')]
    .map((one) => [Number(one.id.slice(3)), one.getBoundingClientRect()])
    .filter(([, place]) => place.bottom > top && place.top < bottom)
    .map(([number]) => number);
}"""
_REST = """(() => {
  const box = document.querySelector('.thread');
  return box.scrollHeight - box.scrollTop - box.clientHeight;
})()"""
_SCROLLS = """async ([by, until]) => {
  const box = document.querySelector('.thread');
  const edge = box.getBoundingClientRect().top;
  const shown = () => new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
  let [most, added, jump, blank] = [0, 0, 0, 0];
  new MutationObserver((all) => {
    const nodes = all.flatMap((one) => [...one.addedNodes]);
    added = Math.max(added, nodes.filter((node) => node.matches?.('.message')).length);
  }).observe(box.querySelector('.column'), { childList: true });
  for (let turn = 0; turn < 400 && !document.getElementById(until); turn += 1) {
    box.scrollTop += by;
    await shown();
    const all = [...box.querySelectorAll('.message')];
    const seen = all.find((one) => one.getBoundingClientRect().bottom > edge + 80);
    most = Math.max(most, all.length);
    if (!seen || seen.getBoundingClientRect().top > edge + 100) { blank += 1; continue; }
    const top = seen.getBoundingClientRect().top;
    let moved = Infinity;
    for (let frame = 0; frame < 2 || (frame < 5 && moved > 1); frame += 1) {
      await shown();
      moved = Math.abs(seen.getBoundingClientRect().top - top);
    }
    jump = Math.max(jump, moved);
  }
  return { most, added, jump, blank, found: Boolean(document.getElementById(until)) };
}"""


@pytest.fixture
def long(looking: Looking) -> Any:
    """A page with two thousand messages, open at the end."""
    return looking.go("#/talk/c1", "#m-m1999")


def seen(page: Any) -> list[int]:
    """The numbers of the messages in view."""
    found: list[int] = page.evaluate(_IN_VIEW)
    return found


def everything(page: Any) -> None:
    """Load all two thousand messages."""
    page.locator("#m-m1999").evaluate("(one) => one.parentElement.parentElement.focus()")
    until(page, """(document.querySelector('.thread').scrollTop = 0,
                    document.querySelector('#m-m0') !== null)""")  # fmt: skip


def test_few_messages_are_in_the_document_at_any_time(long: Any) -> None:
    """Scrolling up, the document stays small, rows come a few per frame, and nothing jumps."""
    assert 0 < long.evaluate(_COUNT) < MOST
    found = long.evaluate(_SCROLLS, [-300, "m-m1500"])
    assert found["found"]
    assert found["most"] < MOST
    assert found["added"] <= 10
    assert found["jump"] < 2
    assert found["blank"] == 0


def test_nothing_jumps_where_the_browser_does_not_anchor(looking: Looking) -> None:
    """As in Safari: the page itself keeps the message that is read in its place."""
    sheet = static_files()["views.css"].plain.decode() + ".thread { overflow-anchor: none }"
    looking.page.route(
        "**/views.css", lambda route: route.fulfill(body=sheet, content_type="text/css")
    )
    page = looking.go("#/talk/c1", "#m-m1999")
    for place in ("m-m1700", "m-m1300"):
        found = page.evaluate(_SCROLLS, [-300, place])
        assert found["found"]
        assert found["jump"] < 20  # formulas and colours of code above come a little later
        page.evaluate("document.querySelector('.thread').scrollTop = 0")


def test_scrolling_down_again_shows_the_same(long: Any) -> None:
    """Rows that were removed come back with their height: nothing jumps on the way down."""
    long.evaluate(_SCROLLS, [-900, "m-m1600"])
    found = long.evaluate(_SCROLLS, [300, "m-m1999"])
    assert found["found"]
    assert (found["blank"], found["most"] < MOST) == (0, True)
    assert found["jump"] < 2


def test_order_and_roles_are_kept(long: Any) -> None:
    """The log holds articles in the order of the conversation, with their names."""
    long.evaluate(_SCROLLS, [-900, "m-m1700"])
    told = long.evaluate("""[...document.querySelectorAll('[role=log] article')]
        .map((one) => [Number(one.dataset.message.slice(1)), one.getAttribute('aria-label')])""")
    numbers = [number for number, _ in told]
    assert numbers == sorted(numbers)
    assert all(name.startswith("Assistant" if number % 2 else "You") for number, name in told)


def test_home_and_end_reach_both_ends(long: Any) -> None:
    """Home goes to the first message that is loaded, End to the last; both are rendered at once."""
    everything(long)
    long.locator(".thread").focus()
    long.keyboard.press("End")
    until(long, f"{_REST} < 2 && document.querySelector('#m-m1999') !== null")
    assert seen(long)[-1] == 1999
    long.keyboard.press("Home")
    until(long, "document.querySelector('.thread').scrollTop === 0")
    until(long, "document.querySelector('#m-m0') !== null")
    assert seen(long)[0] == 0
    assert long.evaluate(_COUNT) < MOST


def test_jump_into_the_middle_fills_the_screen(long: Any) -> None:
    """As by the scrollbar: within a few frames messages fill the viewport, without a gap."""
    everything(long)
    for share in (0.5, 0.1, 0.9, 0.33):
        long.evaluate(
            """(share) => { const box = document.querySelector('.thread');
                            box.scrollTop = share * box.scrollHeight; }""",
            share,
        )
        long.evaluate(_FRAMES, 4)
        found = seen(long)
        assert found == list(range(found[0], found[-1] + 1))
        assert abs(found[0] / 2000 - share) < 0.15
        covered = long.evaluate("""() => {
          const box = document.querySelector('.thread').getBoundingClientRect();
          const at = (share) => [box.left + box.width / 2, box.top + share * box.height];
          return [0.05, 0.3, 0.6, 0.95].map((share) => document.elementsFromPoint(...at(share)))
            .filter((stack) => stack.some((one) => one.matches('.space'))).length;
        }""")
        assert covered == 0


def test_wheel_and_held_page_keys_scroll_through(long: Any) -> None:
    """A wheel turned quickly and Page Up held down both go far up, and the end comes back."""
    long.locator(".thread").hover()
    for _ in range(40):
        long.mouse.wheel(0, -600)
        long.wait_for_timeout(10)
    until(long, "document.querySelector('#m-m1950') === null")
    first = seen(long)[0]
    long.locator(".thread").focus()
    for _ in range(40):
        long.keyboard.down("PageUp")
        long.wait_for_timeout(10)
    long.keyboard.up("PageUp")
    until(long, f"({_IN_VIEW})()[0] < {first - 40}")
    long.get_by_role("button", name="Latest").click()
    until(long, f"{_REST} < 2 && document.querySelector('#m-m1999') !== null")
    assert long.get_by_role("button", name="Latest").count() == 0


def test_focus_survives_scrolling_away(long: Any) -> None:
    """The focused message stays in the document; J goes on from it, wherever one has scrolled."""
    long.locator("#m-m1990").focus()
    long.evaluate(_SCROLLS, [-900, "m-m1600"])
    assert long.evaluate("document.activeElement.id") == "m-m1990"
    assert long.locator("#m-m1980").count() == 0
    long.keyboard.press("k")
    until(long, "document.activeElement.id === 'm-m1989'")
    assert 1989 in seen(long)
    for _ in range(30):
        long.keyboard.press("k")
    until(long, "document.activeElement.id === 'm-m1959'")
    assert 1959 in seen(long)


def test_what_was_opened_or_written_stays(long: Any) -> None:
    """An edit that was begun is still there after scrolling far away and back."""
    long.locator("#m-m1998").focus()
    long.keyboard.press("e")
    until(long, "document.activeElement.matches('.editor textarea')")
    long.keyboard.type(" and more")
    long.evaluate(_SCROLLS, [-900, "m-m1600"])
    assert long.evaluate("document.activeElement.value").endswith(" and more")
    long.get_by_role("button", name="Latest").click()
    until(long, f"{_REST} < 2")
    assert long.locator(".editor textarea").input_value().endswith(" and more")


def test_selection_survives_scrolling_away(long: Any) -> None:
    """A selected text stays selected, and can be copied, when it is out of view."""
    long.evaluate("getSelection().selectAllChildren(document.querySelector('#m-m1998 .md'))")
    long.evaluate(_SCROLLS, [-900, "m-m1600"])
    assert "Message 1998" in long.evaluate("getSelection().toString()")


def test_arrow_up_in_the_composer_reaches_the_last_own_message(long: Any) -> None:
    """It may be far below what is in view."""
    long.evaluate(_SCROLLS, [-900, "m-m1600"])
    assert long.locator("#m-m1998").count() == 0
    long.locator(".composer > textarea").focus()
    long.keyboard.press("ArrowUp")
    until(long, "document.activeElement.id === 'm-m1998'")
    assert 1998 in seen(long)


def test_link_to_a_message_far_up_shows_it(looking: Looking) -> None:
    """A search result is loaded, centred and focused."""
    page = looking.go("#/talk/c1?message=m700", "#m-m700")
    until(page, "document.activeElement.id === 'm-m700'")
    page.wait_for_timeout(300)
    assert 700 in seen(page)
    box = page.locator("#m-m700").bounding_box()
    assert 200 < box["y"] < 600


@pytest.mark.parametrize("mock", [Mock(conversations=3, pace=0.02)], ids=["slowly"])
def test_response_streams_while_one_reads_above(looking: Looking) -> None:
    """Sending goes to the end; scrolling up during the response is not undone by its growth."""
    page = looking.go("#/talk/c1", "#m-m1999")
    page.fill(".composer > textarea", "Say much")
    page.keyboard.press("Enter")
    page.wait_for_selector(".live")
    until(page, f"{_REST} < 2")
    page.locator(".thread").hover()
    page.mouse.wheel(0, -900)
    until(page, f"{_REST} > 500")
    page.evaluate(_FRAMES, 30)
    before = page.evaluate(_IN_VIEW)[0]
    top = page.locator(f"#m-m{before}").bounding_box()["y"]
    page.wait_for_timeout(400)
    assert abs(page.locator(f"#m-m{before}").bounding_box()["y"] - top) < 2
    page.get_by_role("button", name="Latest").click()
    until(page, f"{_REST} < 2")
    page.wait_for_selector(".live", state="detached")
    until(page, f"{_REST} < 2")


def test_earlier_message_is_edited_into_a_branch(looking: Looking, long: Any) -> None:
    """A message far up is edited; the branch shows its beginning, the edit, and the answer."""
    long.evaluate(_SCROLLS, [-900, "m-m1700"])
    number = next(one for one in seen(long) if one % 2 == 0)
    long.locator(f"#m-m{number}").focus()
    long.keyboard.press("e")
    until(long, "document.activeElement.matches('.editor textarea')")
    long.keyboard.type(" otherwise")
    long.keyboard.press("Enter")
    long.get_by_text("otherwise").wait_for()
    long.wait_for_selector(".message.assistant:not(.live) table")
    (sent,) = looking.asked("POST", "talk")
    assert sent["after"] == f"m{number - 1}"
    assert long.locator(f"#m-m{number - 1}").count() == 1
    assert long.locator(f"#m-m{number}").count() == 0
    long.get_by_label("Previous branch").click()
    long.wait_for_selector("#m-m1999")
    until(long, f"{_REST} < 2")


@pytest.mark.parametrize("screen", [PHONE], ids=["360px"])
def test_phone_scrolls_through_as_well(long: Any) -> None:
    """On a narrow screen, where every message is higher."""
    found = long.evaluate(_SCROLLS, [-300, "m-m1800"])
    assert found["found"]
    assert (found["blank"], found["most"] < MOST) == (0, True)
    assert found["jump"] < 2


@pytest.mark.parametrize("screen", [PHONE, {}], ids=["360px", "1280px"])
def test_earlier_messages_that_come_while_one_scrolls_move_nothing(looking: Looking) -> None:
    """They come between two scroll events; the end is not taken for what is in view."""
    page, held = looking.page, list[Any]()

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/conversations/c1?*before=*", hold)
    looking.go("#/talk/c1", "#m-m1999")
    until(page, f"{_REST} < 2")
    page.evaluate("""() => {
      const box = document.querySelector('.thread');
      box.scrollTop = 1500;
      const scrolls = new MutationObserver(() => { box.scrollTop -= 1; });
      scrolls.observe(box.firstElementChild, { subtree: true, childList: true, attributes: true });
    }""")
    until(page, f"{_REST} > 1000")
    page.evaluate(_FRAMES, 30)
    before = page.evaluate(_REST)
    while not held:
        page.wait_for_timeout(25)
    held.pop().continue_()
    until(page, "document.querySelector('.thread').scrollHeight > 12000")
    page.evaluate(_FRAMES, 30)
    assert page.evaluate(_REST) - before < 500  # by a pixel for each change, and rows as measured
    assert page.evaluate(_REST) >= before


def test_window_can_be_resized(long: Any) -> None:
    """At the end, the end stays in view; above it, the message that is read does."""
    long.evaluate("""addEventListener('resize', () => {
      document.querySelector('.thread').scrollTop -= 1; // its event comes before the new sizes
    }, { once: true })""")
    long.set_viewport_size({"width": 700, "height": 500})
    until(long, f"{_REST} < 2")
    long.evaluate(_SCROLLS, [-900, "m-m1800"])
    first = seen(long)[0]
    long.set_viewport_size({"width": 1280, "height": 800})
    long.evaluate(_FRAMES, 4)
    assert abs(seen(long)[0] - first) <= 1
