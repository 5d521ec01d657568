"""Anthropic's SDK: `anthropic_messages.py sync|stream|async|async-stream COUNT`."""

import sys

from anthropic import Anthropic, AsyncAnthropic
from errands import count, do_all

from agentmark.testing import Errand

MODEL = "claude-sonnet-5"
LIMIT = 2000


def take(reply, messages: list, errand: Errand) -> bool:
    """Put what the model said into the conversation, and the results of its calls; whether there is more to do."""
    messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": errand.call(block.name, block.input)}
        for block in reply.content
        if block.type == "tool_use"
    ]
    if results:
        messages.append({"role": "user", "content": results})
    return bool(results)


def said(reply) -> str:
    return "".join(block.text for block in reply.content if block.type == "text")


def sync(errand: Errand) -> str:
    client = Anthropic()
    messages = [{"role": "user", "content": errand.task}]
    while True:
        reply = client.messages.create(model=MODEL, max_tokens=LIMIT, messages=messages, tools=errand.anthropic_tools)
        if not take(reply, messages, errand):
            return said(reply)


def stream(errand: Errand) -> str:
    client = Anthropic()
    messages = [{"role": "user", "content": errand.task}]
    while True:
        with client.messages.stream(
            model=MODEL, max_tokens=LIMIT, messages=messages, tools=errand.anthropic_tools, system="You run errands."
        ) as events:
            for _ in events:
                pass
            reply = events.get_final_message()
        if not take(reply, messages, errand):
            return said(reply)


async def asynchronous(errand: Errand) -> str:
    async with AsyncAnthropic() as client:
        messages = [{"role": "user", "content": errand.task}]
        while True:
            reply = await client.messages.create(
                model=MODEL,
                max_tokens=LIMIT,
                messages=messages,
                tools=errand.anthropic_tools,
                metadata={"user_id": "user-7"},
            )
            if not take(reply, messages, errand):
                return said(reply)


async def asynchronous_stream(errand: Errand) -> str:
    async with AsyncAnthropic() as client:
        messages = [{"role": "user", "content": errand.task}]
        while True:
            async with client.messages.stream(
                model=MODEL, max_tokens=LIMIT, messages=messages, tools=errand.anthropic_tools
            ) as events:
                async for _ in events:
                    pass
                reply = await events.get_final_message()
            if not take(reply, messages, errand):
                return said(reply)


WAYS = {"sync": sync, "stream": stream, "async": asynchronous, "async-stream": asynchronous_stream}

if __name__ == "__main__":
    do_all(WAYS[sys.argv[1]], count())
