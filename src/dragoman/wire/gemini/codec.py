"""The `gemini` codec: the functions of this dialect in one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.wire.codec import Codec, Functions, on_use
from dragoman.wire.context import Context
from dragoman.wire.gemini.dialect import DESCRIPTION, STATE_FIELDS, TARGET
from dragoman.wire.gemini.request import decode_request, encode_request
from dragoman.wire.gemini.request_repairs import STEPS
from dragoman.wire.gemini.settings import SETTINGS
from dragoman.wire.gemini.tables import PARTS
from dragoman.wire.gemini.tools import GEMINI_JSON_SCHEMA, GEMINI_OUTPUT, GEMINI_PARAMETERS
from dragoman.wire.streams import StreamEncoder as AnyEncoder

if TYPE_CHECKING:
    from dragoman.wire.gemini.stream_chunks import Form


_HOME = "dragoman.wire.gemini"
_stream_encoder = on_use(f"{_HOME}.stream_encoder", "StreamEncoder")


class Gemini(Codec):
    """The codec, with both forms of its streams."""

    def stream_encoder(
        self,
        context: Context | None = None,  # noqa: ARG002 - the form is in the URL, not in the request
        *,
        form: Form = "sse",
    ) -> AnyEncoder:
        """A stream encoder, for server-sent events or a JSON array."""
        return self._sealing(_stream_encoder(form=form))


DIALECT = Gemini(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=on_use(f"{_HOME}.response", "decode_response"),
        encode_response=on_use(f"{_HOME}.response", "encode_response"),
        stream_decoder=on_use(f"{_HOME}.stream", "StreamDecoder"),
        stream_encoder=_stream_encoder,
        encode_error=on_use(f"{_HOME}.response_errors", "encode_error"),
        rulebook=f"{_HOME}.rules",
        steps=STEPS,
        places=SETTINGS.places,
        unsupported=PARTS.unsupported,
        further_fields=frozenset({"content", "requests", "generateContentRequest"}),
        front_form=f"{_HOME}.response_front",
        plain=f"{_HOME}.plain",
        lane=f"{_HOME}.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=f"{_HOME}.response",
    missing_counts=("cache_write",),
    services=f"{_HOME}.services",
    schema_profiles=(GEMINI_PARAMETERS, GEMINI_JSON_SCHEMA, GEMINI_OUTPUT),
)
