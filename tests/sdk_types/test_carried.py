"""Every field that is carried as it is has a reason on the page."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.locks import FOLDER, versions
from tests.sdk_types.bodies import SOURCES
from tests.sdk_types.carried import PAGE, Entry, Row, carried, rows, stale, unexplained


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """All entries, if the SDKs have the versions that the page was written for: the locks'."""
    if not FOLDER.exists():
        pytest.skip("only in the repository")
    locked = versions("peers")
    for source in SOURCES:
        name = source.sdk.replace(".", "-")
        if source.is_installed and version(name) != locked[name]:
            pytest.skip(f"{name} has another version; use `make sdk-report`")
    return list(carried())


@pytest.mark.thorough
def test_every_carried_field_has_a_reason(entries: list[Entry]) -> None:
    """A field that is only in extras or an `Opaque` is on the page, with the reason."""
    assert [str(entry) for entry in unexplained(entries, rows())] == []


@pytest.mark.thorough
def test_the_page_names_nothing_else(entries: list[Entry]) -> None:
    """Fields that the model has by now are not on the page."""
    assert stale(entries, rows()) == []


def test_every_entry_of_the_page_is_read() -> None:
    """Each line that begins an entry has fields and a reason."""
    page = PAGE.read_text("utf-8")
    begun = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(begun) == len(rows(page))
    assert all(row.section and row.fields and len(row.reason) > 5 for row in rows(page))


def test_a_row_includes_nested_fields() -> None:
    """And the field's values, but no other fields with the same prefix."""
    row = Row("s", "Request", ("audio",), "why")
    known = [Entry("s", "Request", name) for name in ("audio", "audio.voice.id", "audio=x")]
    others = [Entry("s", "Request", "audiobook"), Entry("s", "Text", "audio"),
              Entry("t", "Request", "audio")]  # fmt: skip
    assert unexplained([*known, *others], [row]) == others
