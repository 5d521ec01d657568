"""LiteLLM: `AgentMarkLogger(decider)` among the callbacks of its proxy, or its `acompletion` in a program."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

from agentmark.adapters.common import candidates_of_body, forced_body, observed, settings_of
from agentmark.decide import Decider, Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.errors import MissingExtraError

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ModuleNotFoundError as error:
    raise MissingExtraError("litellm", "litellm") from error

Body = dict[str, Any]


class AgentMarkLogger(CustomLogger):
    """Marks chat completions. Not for subclassing: LiteLLM overlooks hooks that are inherited."""

    def __init__(self, decider: Decider | Callable[[Any], Decider]) -> None:
        """`decider`: one for all, or a function from who calls (LiteLLM's `UserAPIKeyAuth`) to theirs."""
        super().__init__()
        self._decider_of: Callable[[Any], Any] = (lambda _: decider) if isinstance(decider, Decider) else decider
        self._open: dict[str, tuple[Decider, Decision]] = {}

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: Body, call_type: str) -> Body | None:
        candidates = candidates_of_body(data) if call_type in ("completion", "acompletion") else []
        call_id = data.get("litellm_call_id")
        # Clients may give their calls an id. A second call under an id that is in use is left alone.
        if not candidates or call_id is None or call_id in self._open:
            return None
        decider = self._decider_of(user_api_key_dict)
        decision = await decider.adecide(candidates, data.get("messages") or ())
        self._open[call_id] = (decider, decision)
        return forced_body(data, decision.behavior)

    async def async_post_call_success_hook(self, data: Body, user_api_key_dict: Any, response: Any) -> None:
        with self._closing(data) as reply:
            reply.calls = _calls(response)

    async def async_post_call_failure_hook(self, request_data: Body, *_: Any, **__: Any) -> None:
        with self._closing(request_data):
            """A call that fails has done nothing."""

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: Body
    ) -> AsyncIterator[Any]:
        with self._closing(request_data) as reply:
            calls = []
            async for chunk in response:
                calls += _calls(chunk)
                yield chunk
            reply.calls = calls

    def _closing(self, data: Body) -> Any:
        return observed(*self._open.pop(str(data.get("litellm_call_id")), (None, None)))

    async def acompletion(self, **request: Any) -> Any:
        """`litellm.acompletion`, marked."""
        data = {"litellm_call_id": str(uuid4()), **request}
        data = await self.async_pre_call_hook(None, None, data, "acompletion") or data
        try:
            response = await litellm.acompletion(**data)
        except BaseException:
            await self.async_post_call_failure_hook(data)
            raise
        if request.get("stream"):
            return self.async_post_call_streaming_iterator_hook(None, response, data)
        await self.async_post_call_success_hook(data, None, response)
        return response


def chat(model: str, **options: Any) -> FunctionChat:
    """A model that LiteLLM can call, for side calls: `Verbalised(chat("openai/gpt-5-mini"))`."""

    async def acomplete(request: ChatRequest) -> ChatReply:
        asked = {"model": model, "messages": list(request.messages), **settings_of(request), **options}
        reply = await litellm.acompletion(**asked)
        counts = {"input_tokens": reply.usage.prompt_tokens, "output_tokens": reply.usage.completion_tokens}
        return ChatReply(text=reply.choices[0].message.content or "", **counts)

    return FunctionChat(model, acomplete=acomplete)


def _calls(response: Any) -> list[str]:
    """The functions that a reply calls, or that a chunk of one begins to call."""
    said = [getattr(one, "delta", None) or getattr(one, "message", None) for one in getattr(response, "choices", ())]
    calls = [call.function for one in said for call in getattr(one, "tool_calls", None) or ()]
    return [function.name for function in calls if function.name]
