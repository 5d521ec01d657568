"""LiteLLM: `AgentMarkLogger(decider)` among the callbacks of its proxy, or its `acompletion` in a program."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import uuid4

from agentmark.adapters.observing import Reply, observed
from agentmark.adapters.side_calls import settings_of
from agentmark.decide.decider import Decider
from agentmark.decide.decision import Decision
from agentmark.elicit.chat import ChatReply, ChatRequest, FunctionChat
from agentmark.errors import MissingExtraError
from agentmark.wire import openai_chat

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
        self._decider = decider
        # Decisions whose reply has not come yet, by the id of the call: the hooks before and after it meet by that.
        self._open: dict[str, tuple[Decider, Decision]] = {}

    async def async_pre_call_hook(self, user_api_key_dict: Any, cache: Any, data: Body, call_type: str) -> Body | None:
        if call_type not in ("completion", "acompletion"):
            return None
        candidates = openai_chat.candidates(data)
        call_id = data.get("litellm_call_id")
        # Clients may give their calls an id. A second call under an id that is in use is left alone.
        if not candidates or call_id is None or call_id in self._open:
            return None
        decider = self._decider if isinstance(self._decider, Decider) else self._decider(user_api_key_dict)
        decision = await decider.adecide(candidates, openai_chat.conversation(data))
        self._open[call_id] = (decider, decision)
        return openai_chat.forced(data, decision.behavior)

    async def async_post_call_success_hook(self, data: Body, user_api_key_dict: Any, response: Any) -> None:
        with self._closing(data) as reply:
            reply.calls = openai_chat.calls(_body_of(response, "message"))

    async def async_post_call_failure_hook(self, request_data: Body, *_: Any, **__: Any) -> None:
        with self._closing(request_data):
            """A call that fails has done nothing."""

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: Body
    ) -> AsyncIterator[Any]:
        with self._closing(request_data) as reply:
            stream = openai_chat.stream()
            async for chunk in response:
                stream.add(_body_of(chunk, "delta"))
                yield chunk
            reply.calls = stream.calls

    def _closing(self, data: Body) -> AbstractContextManager[Reply]:
        """Around the reply of a call: observes what it did, if there was anything to decide."""
        opened = self._open.pop(str(data.get("litellm_call_id")), None)
        return nullcontext(Reply()) if opened is None else observed(*opened)

    async def acompletion(self, **request: Any) -> Any:
        """`litellm.acompletion`, marked."""
        data = {"litellm_call_id": str(uuid4()), **request}
        changed = await self.async_pre_call_hook(None, None, data, "acompletion")
        data = changed or data
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
        return ChatReply(
            text=reply.choices[0].message.content or "",
            input_tokens=reply.usage.prompt_tokens,
            output_tokens=reply.usage.completion_tokens,
        )

    return FunctionChat(model, acomplete=acomplete)


def _body_of(response: Any, part: str) -> Body:
    """What of a reply, or of a chunk of one, says which tools it calls, as the provider's JSON has it.

    `part` is what a choice holds: a "message", or a "delta" of one. Only these members are read, and none is relied
    on: another callback may have put an object of its own in the reply's place.
    """
    choices = []
    for choice in getattr(response, "choices", None) or ():
        calls = [_body_of_call(call) for call in getattr(getattr(choice, part, None), "tool_calls", None) or ()]
        choices.append({"index": getattr(choice, "index", None), part: {"tool_calls": calls}})
    return {"choices": choices}


def _body_of_call(call: Any) -> Body:
    body = {"index": getattr(call, "index", None), "id": getattr(call, "id", None)}
    for kind in ("function", "custom"):
        described = getattr(call, kind, None)
        if described is not None:
            body[kind] = {"name": getattr(described, "name", None)}
    return body
