"""OpenAI's SDK, chat completions: `openai_chat.py sync|stream|async|async-stream COUNT`."""

import json
import sys

from errands import count, do_all
from openai import AsyncOpenAI, OpenAI

from agentmark.testing import Errand

MODEL = "gpt-4o"


def take(said, messages: list, errand: Errand) -> bool:
    """Put what the model said into the conversation, and the results of its calls; whether there is more to do."""
    messages.append(said.to_dict())
    for call in said.tool_calls or ():
        result = errand.call(call.function.name, json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return bool(said.tool_calls)


def sync(errand: Errand) -> str | None:
    client = OpenAI()
    messages = [{"role": "user", "content": errand.task}]
    while True:
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=errand.chat_tools)
        if not take(reply.choices[0].message, messages, errand):
            return reply.choices[0].message.content


def stream(errand: Errand) -> str | None:
    client = OpenAI()
    messages = [{"role": "user", "content": errand.task}]
    while True:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=errand.chat_tools) as events:
            for _ in events:
                pass
            said = events.get_final_completion().choices[0].message
        messages.append(spoken(said))
        for call in said.tool_calls or ():
            result = errand.call(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not said.tool_calls:
            return said.content


def spoken(said) -> dict:
    """A parsed message without what the parser added."""
    message = {"role": "assistant", "content": said.content}
    if said.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in said.tool_calls
        ]
    return message


async def asynchronous(errand: Errand) -> str | None:
    async with AsyncOpenAI() as client:
        messages = [{"role": "user", "content": errand.task}]
        while True:
            reply = await client.chat.completions.create(model=MODEL, messages=messages, tools=errand.chat_tools)
            if not take(reply.choices[0].message, messages, errand):
                return reply.choices[0].message.content


async def asynchronous_stream(errand: Errand) -> str | None:
    async with AsyncOpenAI() as client:
        messages = [{"role": "user", "content": errand.task}]
        while True:
            asked = client.chat.completions.create(
                model=MODEL,
                messages=messages,
                tools=errand.chat_tools,
                stream=True,
                stream_options={"include_usage": True},
            )
            text, calls = "", {}
            async for chunk in await asked:
                for choice in chunk.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or ():
                        call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                        call["id"] += part.id or ""
                        call["name"] += part.function.name or ""
                        call["arguments"] += part.function.arguments or ""
            if not calls:
                return text
            made = [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in calls.values()
            ]
            messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
            for call in calls.values():
                result = errand.call(call["name"], json.loads(call["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


WAYS = {"sync": sync, "stream": stream, "async": asynchronous, "async-stream": asynchronous_stream}

if __name__ == "__main__":
    do_all(WAYS[sys.argv[1]], count())
