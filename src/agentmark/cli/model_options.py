"""Which model a command talks to: a local file, or any OpenAI-compatible endpoint."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentmark.cli.common import text
from agentmark.errors import SettingError

if TYPE_CHECKING:
    from agentmark.elicit.chat import Chat
    from agentmark.elicit.endpoint import Endpoint
    from agentmark.elicit.local import LocalModel
    from agentmark.elicit.situation import Elicitor

LOCAL = "local"
LOCAL_ELICITORS = ("logits-names", "logits-labels", "labels", "verbalised")
DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY"
MAX_VERBALISED_TOKENS = 400


def add_model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", type=text, metavar="NAME", help=f"'{LOCAL}' for one on this machine, or the endpoint's name for it"
    )
    parser.add_argument(
        "--gguf", type=Path, metavar="FILE", help="a model file for this machine (default: SmolLM2-135M)"
    )
    parser.add_argument(
        "--base-url", type=text, metavar="URL", help="an OpenAI-compatible endpoint, for instance https://HOST/v1"
    )
    parser.add_argument(
        "--api-key-env",
        type=text,
        default=DEFAULT_KEY_VARIABLE,
        metavar="VARIABLE",
        help=f"environment variable with the endpoint's key (default: {DEFAULT_KEY_VARIABLE})",
    )


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """An open model, and the elicitors that it can be asked with."""

    chat: "Chat"
    endpoint: "Endpoint | None" = None
    local: "LocalModel | None" = None
    # SmolLM2, whose tool choices are near chance.
    small: bool = False

    @property
    def default_elicitor(self) -> str:
        if self.local is None:
            # A command wants a list of its options; samples of the model's next message are an agent's.
            return "stated"
        # The small model hardly ever writes a name that it was offered; a letter it does write.
        return "logits-labels" if self.small else "logits-names"

    def elicitor(self, name: str | None = None) -> "Elicitor":
        from agentmark.elicit import Labels, Logits, Verbalised, elicitor_for

        name = name or self.default_elicitor
        if self.endpoint is not None:
            return elicitor_for(self.endpoint, name)
        assert self.local is not None
        match name:
            case "logits-names":
                return Logits(self.local)
            case "logits-labels":
                return Logits(self.local, "labels")
            case "labels":
                return Labels(self.local)
            case "verbalised":
                return Verbalised(self.local, max_tokens=MAX_VERBALISED_TOKENS)
        raise SettingError("--elicitor", f"{name!r} is none of {', '.join(LOCAL_ELICITORS)}")


@contextmanager
def open_model(arguments: argparse.Namespace) -> Iterator[ChosenModel]:
    """The model that the options name."""
    from agentmark.elicit import Endpoint, HttpChat, LocalModel

    if arguments.base_url is not None:
        if arguments.gguf is not None:
            raise SettingError("--gguf", "is for a model on this machine, not for an endpoint")
        if arguments.model in (None, LOCAL):
            raise SettingError("--model", "the endpoint's name for the model is needed")
        key = os.environ.get(arguments.api_key_env)
        endpoint = Endpoint(arguments.base_url, arguments.model, api_key=key)
        yield ChosenModel(HttpChat(endpoint), endpoint=endpoint)
        return
    if arguments.model not in (None, LOCAL):
        raise SettingError("--model", f"{arguments.model!r} needs --base-url; '{LOCAL}' is on this machine")
    with LocalModel(arguments.gguf) as model:
        yield ChosenModel(model, local=model, small=arguments.gguf is None)
