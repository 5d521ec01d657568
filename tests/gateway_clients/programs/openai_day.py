"""An agent on OpenAI's SDK that plans days: three tools, three calls a day: `openai_day.py FIRST COUNT`.

The model is whatever serves at the address; what each tool returned is fed back.
"""

import json
import sys

from openai import OpenAI

PLACES = ("a rainy town", "the mountains", "a big city", "an island", "a quiet village", "the desert", "a harbour")
CALLS = 3
TOOLS = {
    "visit": ("Travel to a city.", "city", "You are in {}."),
    "eat": ("Eat a dish.", "dish", "You had {}."),
    "read": ("Read a book.", "book", "You read {}."),
}


def described(name: str) -> dict:
    does, wants, _ = TOOLS[name]
    parameters = {"type": "object", "properties": {wants: {"type": "string"}}, "required": [wants]}
    return {"type": "function", "function": {"name": name, "description": does, "parameters": parameters}}


def day(number: int) -> int:
    """How many tools were called."""
    client = OpenAI(timeout=600)
    task = f"It is day {number + 1} of my leave, in {PLACES[number % len(PLACES)]}. Choose for me."
    messages = [{"role": "user", "content": task}]
    made = 0
    while made < CALLS:
        reply = client.chat.completions.create(
            model="local", messages=messages, tools=[described(name) for name in TOOLS], temperature=1
        )
        said = reply.choices[0].message
        messages.append(said.to_dict())
        if not said.tool_calls:
            break
        for call in said.tool_calls:
            _, wants, result = TOOLS[call.function.name]
            told = result.format(json.loads(call.function.arguments)[wants])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
            made += 1
    return made


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(first, first + count):
        print(json.dumps({"calls": day(number)}), flush=True)
