"""What the page shows of a run: stored messages, and a summary of the request sent."""

from __future__ import annotations

from time import time
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.page.branches import Branches, BranchPage
from dragoman.gateway.page.routed import PlacedModel
from dragoman.gateway.page.views import view_of
from dragoman.history.branches import read_tail, stretches
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Storage
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Loss, Repair

_MAX_NOTES = 200


class Viewer:
    """Builds the views of one conversation's messages, each with its sibling branches."""

    def __init__(self, storage: Storage, identity: SessionIdentity, branches: Branches) -> None:
        self._storage, self._identity, self._branches = storage, identity, branches

    async def view(self, message: Message) -> dict[str, Any]:
        """Returns the view of a stored message."""
        view = view_of(message, self._identity.digest)
        view["created_at"] = message.created_at or time()
        session = await self._storage.session(self._identity)
        if session is None or not session.forks:
            return view
        row = await self._storage.row(self._identity, message.id)
        if row is None:
            return view
        path = stretches(session, row.branch, row.seq)
        rows = await read_tail(self._storage, self._identity, path, 2)
        found = BranchPage([row], rows[0] if len(rows) > 1 else None, has_more=False)
        siblings = (await self._branches.siblings(session, found)).get(row.id)
        if siblings:
            view |= {"siblings": siblings, "sibling": siblings.index(row.branch)}
        return view


def sent_view(place: PlacedModel, request: Request, omitted: int) -> dict[str, Any]:
    """Summarises the request sent to a provider. The body is available at a separate endpoint."""
    try:
        encoded = place.encoded(request)
    except DragomanError:  # an in-process model accepts what can't be encoded
        return {"dialect": place.dialect, "losses": [], "repairs": [], "omitted": omitted}
    return {
        "dialect": place.dialect,
        "target": place.name,
        "omitted": omitted,
        **notes_of(encoded),
    }


def notes_of(encoded: Encoded) -> dict[str, Any]:
    """Returns the losses and repairs of an encoded request, up to a limit."""
    return {
        "losses": [loss_view(each) for each in encoded.losses[:_MAX_NOTES]],
        "repairs": [repair_view(each) for each in encoded.repairs[:_MAX_NOTES]],
    }


def loss_view(loss: Loss) -> dict[str, Any]:
    """Returns the view of a loss."""
    return {"path": loss.path, "reason": loss.reason}


def repair_view(repair: Repair) -> dict[str, Any]:
    """Returns the view of a repair."""
    return {
        "path": repair.path, "rule": repair.rule, "action": repair.action, "reason": repair.reason,
    }  # fmt: skip
