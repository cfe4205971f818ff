"""What Anthropic's API demands of images."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.model.media import sniff_base64
from dragoman.wire.anthropic.view import View
from dragoman.wire.violations import Found, Placed, field

_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_MOST_CHARACTERS = 5 * 1024 * 1024


def w65_images_have_a_source(view: View) -> Found:
    """An image is base64 of a known type, without a data address around it, or an address."""
    for path, block in view.of_type("image"):
        if field(block, "source").get("type") not in ("base64", "url", "file"):
            yield f"{path}.source.type", "the source of an image is base64, url or file"
    for path, source in _inline(view):
        data = source.get("data")
        if source.get("media_type") not in _IMAGES:
            yield f"{path}.media_type", f"must be one of {', '.join(_IMAGES)}"
        if not isinstance(data, str) or data[:5].lower() == "data:":
            yield f"{path}.data", "must be base64, without data: before it"


def w65_images_are_of_their_type(view: View) -> Found:
    """The data begins as images of that type do, where it can be told."""
    for path, source in _inline(view):
        data, told = source.get("data"), source.get("media_type")
        found = sniff_base64(data) if isinstance(data, str) else None
        if found in _IMAGES and told in _IMAGES and found != told:
            yield f"{path}.media_type", "the data is an image of another type"


def w65_images_are_small(view: View) -> Found:
    """Images have at most 5 MB, as base64."""
    for path, source in _inline(view):
        data = source.get("data")
        if isinstance(data, str) and len(data) > _MOST_CHARACTERS:
            yield f"{path}.data", "an image has at most 5 MB, counted as base64"


def _inline(view: View) -> Iterator[Placed]:
    """The sources of images that hold their data."""
    for path, block in view.of_type("image"):
        source = field(block, "source")
        if source.get("type") == "base64":
            yield f"{path}.source", source
