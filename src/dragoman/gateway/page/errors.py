"""What the page shows of an error."""

from __future__ import annotations

from dragoman.errors import DragomanError
from dragoman.wire.error_reporting import provider_sentence


def error_view(error: DragomanError) -> dict[str, str]:
    """The message, which quotes no content, and what the provider said, which may (`detail`).

    Whoever may see the page may see what concerns the operator's account.
    """
    view = {"message": str(error), "kind": type(error).__name__}
    if (detail := provider_sentence(error, is_for_operator=True)) is not None:
        view["detail"] = detail
    return view
