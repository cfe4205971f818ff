"""The `anthropic` codec: the functions of this dialect in one object."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.model.requests import Request
from dragoman.model.tools import ServerTool
from dragoman.wire.anthropic.dialect import DESCRIPTION, NAME, STATE_FIELDS, TARGET
from dragoman.wire.anthropic.request import STEPS, decode_request, encode_request
from dragoman.wire.anthropic.settings import PLACES
from dragoman.wire.anthropic.tables import BLOCKS
from dragoman.wire.anthropic.tools import ANTHROPIC, ANTHROPIC_STRICT
from dragoman.wire.anthropic.tools_provider import betas_of
from dragoman.wire.codec import Codec, Functions, on_use
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.overlay import fields_of
from dragoman.wire.target import Target

_HOME = "dragoman.wire.anthropic"
BETA = "anthropic-beta"
_FAST = "fast-mode-2026-02-01"
HEADERS = f"{NAME} headers"
"""The extras key under which a request keeps its headers."""


class Anthropic(Codec):
    """The codec, with the `anthropic-beta` header (G9)."""

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """Decode a request; the `anthropic-beta` header is kept in the extras."""
        request = super().decode_request(body, path=path)
        if not headers:
            return request
        tried = [value for name, value in headers.items() if name.lower() == BETA]
        if not tried:
            return request
        return request.replace(extras={**request.extras, HEADERS: {BETA: ",".join(tried)}})

    def encode_request(
        self,
        request: Request,
        target: Target | None = None,
        *,
        strict: bool = False,
        repair: bool = True,
    ) -> Encoded:
        """Encode a request; restores the `anthropic-beta` header."""
        encoded = super().encode_request(request, target, strict=strict, repair=repair)
        encoded.headers = {}
        if HEADERS in request.extras:
            kept = fields_of(request.extras, HEADERS)
            encoded.headers = {key: value for key, value in kept.items() if isinstance(value, str)}
        betas: list[str] = []
        if any(isinstance(tool, ServerTool) and tool.dialect != NAME for tool in request.tools):
            betas += betas_of(encoded.body.get("tools", ()))
        given = encoded.headers.get(BETA)
        if request.service is not None and not given and encoded.body.get("speed") == "fast":
            betas.append(_FAST)
        if betas:
            named = [given, *betas] if given else betas
            encoded.headers = {**encoded.headers, BETA: ",".join(named)}
        return encoded


DIALECT = Anthropic(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=on_use(f"{_HOME}.response", "decode_response"),
        encode_response=on_use(f"{_HOME}.response", "encode_response"),
        stream_decoder=on_use(f"{_HOME}.stream", "StreamDecoder"),
        stream_encoder=on_use(f"{_HOME}.stream_encoder", "StreamEncoder"),
        encode_error=on_use(f"{_HOME}.response", "encode_error"),
        rulebook=f"{_HOME}.rules",
        steps=STEPS,
        places=PLACES,
        unsupported=BLOCKS.unsupported,
        front_form=f"{_HOME}.response_front",
        plain=f"{_HOME}.plain",
        lane=f"{_HOME}.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=f"{_HOME}.response",
    services=f"{_HOME}.services",
    output_profile=ANTHROPIC_STRICT,
    schema_profiles=(ANTHROPIC, ANTHROPIC_STRICT),
)
