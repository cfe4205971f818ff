"""What Ollama demands of `options` and `format`."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.wire.ollama.view import View
from dragoman.wire.violations import Found, is_number

_NUMBERS = (
    "draft_num_predict", "frequency_penalty", "main_gpu", "min_p", "num_batch", "num_ctx",
    "num_gpu", "num_keep", "num_predict", "num_thread", "presence_penalty", "repeat_last_n",
    "repeat_penalty", "seed", "temperature", "top_k", "top_p", "typical_p",
)  # fmt: skip
# Other dialects' words for what is an option here; at the top of a body they are ignored as well.
_ELSEWHERE = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def w107_the_window_is_an_option(view: View) -> Found:
    """The size of the window is set in the options.

    Elsewhere it is ignored, and the front of a long conversation dropped without a word.
    """
    if view.body.get("num_ctx") is not None:
        yield "num_ctx", "it is ignored here: it belongs into options"


def w108_options_are_of_their_types(view: View) -> Found:
    """Options are an object of numbers, yes or no, and a list of texts to stop at."""
    options = view.body.get("options")
    if options is not None and not isinstance(options, Mapping):
        yield "options", "must be an object"
        return
    for key in _NUMBERS:
        value = view.options.get(key)
        if value is not None and not is_number(value):
            yield f"options.{key}", "must be a number"
    if not isinstance(view.options.get("use_mmap"), (bool, type(None))):
        yield "options.use_mmap", "must be true or false"
    stop = view.options.get("stop")
    is_list = isinstance(stop, (list, tuple)) and all(isinstance(text, str) for text in stop)
    if stop is not None and not is_list:
        yield "options.stop", "must be a list of texts"


def w108_sampling_is_in_the_options(view: View) -> Found:
    """Sampling settings stand in the options; at the top of a body they are ignored."""
    for key in (*_NUMBERS, "stop", *_ELSEWHERE):
        if key != "num_ctx" and view.body.get(key) is not None:
            yield key, "it is ignored here: it belongs into options"
    for key in _ELSEWHERE:
        if view.options.get(key) is not None:
            yield f"options.{key}", "it is ignored here: num_predict is meant"


def w108_formats_are_json_or_a_schema(view: View) -> Found:
    """The form of the answer is `json` or a schema."""
    form = view.body.get("format")
    if form is not None and form not in ("", "json") and not isinstance(form, Mapping):
        yield "format", 'must be "json" or a JSON schema'
