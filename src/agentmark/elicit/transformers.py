"""A model in this process through transformers and torch: a `TokenModel` for `Logits`. Loads GGUF files as well."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from agentmark.elicit.conversation import chat_messages, read_arguments, tool_definitions
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.situation import Candidate, Message
from agentmark.elicit.templates import form_for, written
from agentmark.elicit.tokens import Ask, Reading, Token
from agentmark.errors import MissingExtraError, SettingError

_MARKER = "REPLY"


class TransformersModel:
    """One model on the CPU, or wherever `device` says. Calls take turns."""

    def __init__(self, source: str | Path, *, device: str = "cpu", threads: int = 1) -> None:
        """`source` is a GGUF file, a folder, or a name that transformers knows. A GGUF file is unpacked to 32 bits."""
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError:
            raise MissingExtraError("transformers", "transformers") from None
        path = Path(source)
        gguf = path.is_file()
        place, options = (str(path.parent), {"gguf_file": path.name}) if gguf else (str(source), {})
        self.model = path.stem if gguf else path.name
        torch.set_num_threads(threads)
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(place, **options)
            self._network: Any = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32, **options)
        except (OSError, ValueError, KeyError) as error:
            raise SettingError("source", f"{source} cannot be loaded: {error}") from None
        self._torch: Any = torch
        self._network = self._network.to(device).eval()
        self._device = device
        self._lock = threading.RLock()
        self._texts: dict[int, bytes] | None = None
        # What its template shows of calls, tool output and tools.
        self._form = form_for(self._rendered)
        self.end_token = self._end_token()

    def prompt(self, messages: Sequence[Message], opening: str, tools: Sequence[Candidate] = ()) -> list[int]:
        shown = tools if self._form.tools else ()
        rendered = self._rendered(written(messages, self._form), shown) + opening
        tokens: list[int] = self._tokenizer(rendered, add_special_tokens=False)["input_ids"]
        return tokens

    def tokens(self, text: str) -> list[Token]:
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        texts = self._vocabulary()
        return [Token(one, texts.get(one, b"")) for one in ids]

    def read(self, prompt: Sequence[int], asks: Sequence[Ask]) -> list[Reading]:
        """The prompt is computed once and kept; each place is then computed from there. Every token is in a reading."""
        torch, texts = self._torch, self._vocabulary()
        with self._lock, torch.inference_mode():
            cache = self._forward(list(prompt), None)
            readings = []
            for ask in asks:
                logits = cache.logits
                if ask.path:
                    logits = self._forward(list(ask.path), cache.past_key_values).logits
                    cache.past_key_values.crop(-len(ask.path))
                chances = torch.softmax(logits[0, -1].double(), dim=-1).tolist()
                readings.append(Reading(dict(enumerate(chances)), texts))
        return readings

    def close(self) -> None:
        with self._lock:
            self._network = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forward(self, tokens: list[int], past: Any) -> Any:
        if self._network is None:
            raise UpstreamError("transformers", f"{self.model} is closed")
        ids = self._torch.tensor([tokens], device=self._device)
        return self._network(input_ids=ids, past_key_values=past, use_cache=True)

    def _rendered(self, messages: Sequence[Message], tools: Sequence[Candidate] = (), *, reply: bool = True) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                [_with_objects(message) for message in chat_messages(messages)],
                tools=tool_definitions(tools) or None,
                tokenize=False,
                add_generation_prompt=reply,
            )
        )

    def _end_token(self) -> int:
        """The token that ends a reply, as the model's template writes it."""
        said: list[Message] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARKER}]
        rest = self._rendered(said, reply=False).rpartition(_MARKER)[2]
        return int(self._tokenizer(rest, add_special_tokens=False)["input_ids"][0])

    def _vocabulary(self) -> dict[int, bytes]:
        """The bytes of every token that is not special."""
        if self._texts is None:
            special = set(self._tokenizer.all_special_ids)
            pieces = self._tokenizer.get_vocab()
            self._texts = {id_: _bytes(piece) for piece, id_ in pieces.items() if id_ not in special}
        return self._texts


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """Templates write the arguments of calls themselves, and want them as objects."""
    for call in message.get("tool_calls", ()):
        call["function"]["arguments"] = read_arguments(call["function"]["arguments"])
    return message


def _bytes(piece: str) -> bytes:
    """A piece of a byte-level vocabulary stands for bytes, character by character; others mark spaces by a block."""
    if all(character in _BYTE_OF for character in piece):
        return bytes([_BYTE_OF[character] for character in piece])
    return piece.replace("▁", " ").encode()


def _byte_table() -> dict[str, int]:
    """How byte-level tokenizers write bytes: printable ones as themselves, the others from code point 256 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_table()
