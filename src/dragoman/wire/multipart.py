"""Multipart forms with a file (RFC 7578)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman.wire.digests import sha256
from dragoman.wire.services import Piece, ToUpload

_UNQUOTED = re.compile('[\\x00-\\x1f\\x7f"\\\\\ud800-\udfff]')
"""What a quoted name can't contain; half characters are in names of files that aren't UTF-8."""


def form(upload: ToUpload, fields: Mapping[str, str], headers: Mapping[str, str]) -> Piece:
    """A form with these fields, and the file as `file`.

    The boundary is derived from the content: the same upload always gives the same request, so that
    replays find it.
    """
    boundary = f"dragoman-{sha256(upload.content).hexdigest()}"
    lines = [_field(boundary, name, value) for name, value in fields.items()]
    lines.append(_head(boundary, upload))
    end = f"\r\n--{boundary}--\r\n"
    body = b"".join(["".join(lines).encode("utf-8", "replace"), upload.content, end.encode()])
    return Piece({"Content-Type": f"multipart/form-data; boundary={boundary}", **headers}, body)


def _field(boundary: str, name: str, value: str) -> str:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'


def _head(boundary: str, upload: ToUpload) -> str:
    name = _UNQUOTED.sub("_", upload.name)  # it may contain line breaks or quotes
    mime = _UNQUOTED.sub("_", upload.mime)
    return (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        f"Content-Type: {mime}\r\n\r\n"
    )
