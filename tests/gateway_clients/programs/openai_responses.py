"""OpenAI's SDK, Responses: `openai_responses.py sync|stream|async|async-stream COUNT`.

Two keep the conversation at the provider (`previous_response_id`), and two send it whole each time.
"""

import json
import sys

from errands import count, do_all
from openai import AsyncOpenAI, OpenAI

from agentmark.testing import Errand

MODEL = "gpt-4o"


def results(reply, errand: Errand) -> list[dict]:
    """What the calls of a reply gave, as the next input has it."""
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": errand.call(item.name, json.loads(item.arguments)),
        }
        for item in reply.output
        if item.type == "function_call"
    ]


def sync(errand: Errand) -> str | None:
    client = OpenAI()
    given, previous = [{"role": "user", "content": errand.task}], {}
    while True:
        reply = client.responses.create(model=MODEL, input=given, tools=errand.responses_tools, **previous)
        given, previous = results(reply, errand), {"previous_response_id": reply.id}
        if not given:
            return reply.output_text


def stream(errand: Errand) -> str | None:
    client = OpenAI()
    given = [{"role": "user", "content": errand.task}]
    while True:
        with client.responses.stream(model=MODEL, input=given, tools=errand.responses_tools, store=False) as events:
            for _ in events:
                pass
            reply = events.get_final_response()
        given += [plain(item) for item in reply.output]
        came = results(reply, errand)
        if not came:
            return reply.output_text
        given += came


def plain(item) -> dict:
    """An item of a reply without what the parser added."""
    item = item.to_dict()
    item.pop("parsed_arguments", None)
    for part in item.get("content") or ():
        part.pop("parsed", None)
    return item


async def asynchronous(errand: Errand) -> str | None:
    async with AsyncOpenAI() as client:
        given = [{"role": "user", "content": errand.task}]
        while True:
            reply = await client.responses.create(
                model=MODEL, input=given, tools=errand.responses_tools, instructions="You run errands.", store=False
            )
            given += [item.to_dict() for item in reply.output]
            came = results(reply, errand)
            if not came:
                return reply.output_text
            given += came


async def asynchronous_stream(errand: Errand) -> str | None:
    async with AsyncOpenAI() as client:
        given, previous = [{"role": "user", "content": errand.task}], {}
        while True:
            asked = client.responses.create(
                model=MODEL, input=given, tools=errand.responses_tools, stream=True, **previous
            )
            reply = None
            async for event in await asked:
                if event.type == "response.completed":
                    reply = event.response
            given, previous = results(reply, errand), {"previous_response_id": reply.id}
            if not given:
                return reply.output_text


WAYS = {"sync": sync, "stream": stream, "async": asynchronous, "async-stream": asynchronous_stream}

if __name__ == "__main__":
    do_all(WAYS[sys.argv[1]], count())
