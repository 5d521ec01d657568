"""Prompts that ask for a list: ours for any agent, and the paper's three (appendix, "Prompt Examples").

A prompt is asked with the candidates in the order in which they shall be shown.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentmark.elicit.conversation import text_of
from agentmark.elicit.parse import Stated, parse_weights, parse_weights_and_arguments
from agentmark.elicit.situation import Candidate, Message, Situation


@dataclass(frozen=True, slots=True)
class Prompt:
    """How to ask, what shape to ask for, and how to read the reply."""

    name: str
    messages: Callable[[Situation, Sequence[Candidate]], list[Message]]
    parse: Callable[[str, Sequence[str]], Stated]
    schema: Callable[[Sequence[Candidate]], dict[str, Any]]
    # Whether the question follows the agent's own messages; else they are told inside of it.
    keeps_roles: bool = False


def transcript(messages: Sequence[Message]) -> str:
    """A conversation as text, for the paper's prompts. A tool's output may hold lines that look like other roles'."""
    return "\n".join([line for message in messages for line in _lines(message)])


def _lines(message: Message) -> list[str]:
    role = str(message.get("role", "user"))
    lines = []
    text = text_of(message.get("content"))
    if text:
        lines.append(f"[{role}] {text}")
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        lines.append(f"[{role} calls] {function.get('name')} {text_of(function.get('arguments'))}")
    return lines


def _described(candidates: Sequence[Candidate]) -> str:
    return "\n".join([f"- {c.name}: {c.description}" if c.description else f"- {c.name}" for c in candidates])


def _numbers_schema(candidates: Sequence[Candidate]) -> dict[str, Any]:
    # No minimum or maximum: strict modes of some providers refuse them. The parser checks.
    return _object_schema({candidate.name: {"type": "number"} for candidate in candidates})


def _object_schema(members: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}


def _names_json(candidates: Sequence[Candidate]) -> str:
    return json.dumps([candidate.name for candidate in candidates], ensure_ascii=False)


# --- any agent -----------------------------------------------------------------------------------------------------

_GENERAL_QUESTION = (
    "Before you go on: how likely is each of these options to be your next step? Take none of them yet. Reply with one"
    " JSON object only: every option's exact name with its probability, a number from 0 to 1. They sum to 1.\n\n"
    'With the options "search_news", "weather" and "(answer)", a reply could be:\n'
    '{"search_news": 0.02, "weather": 0.93, "(answer)": 0.05}'
)


def _general_messages(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    """The agent's conversation as it is, and one message of ours: the model is asked as the agent that it is."""
    question = f"{_GENERAL_QUESTION}\n\nOptions:\n{_described(shown)}\n\nNames: {_names_json(shown)}"
    return [*situation.messages, {"role": "user", "content": question}]


GENERAL = Prompt("general", _general_messages, parse_weights, _numbers_schema, keeps_roles=True)

# --- ALFWorld ------------------------------------------------------------------------------------------------------

_ALFWORLD_SYSTEM = (
    "You are an expert household task agent. Analyze the current situation and assign probabilities to each action."
)
_ALFWORLD_BLUEPRINTS = """\
pick_and_place_simple:
  1. Search locations like cabinet/drawer/countertop for the target object.
  2. take <target>
  3. go to <destination>
  4. move <target> to <destination>
pick_clean_then_place:
  1. Find and take the target object.
  2. go to sinkbasin 1
  3. clean <target> with sinkbasin 1
  4. go to <destination>
  5. move <target> to <destination>
pick_heat_then_place:
  1. Find and take the target object.
  2. go to microwave 1
  3. heat <target> with microwave 1
  4. go to <destination>
  5. move <target> to <destination>
pick_cool_then_place:
  1. Find and take the target object.
  2. go to fridge 1
  3. cool <target> with fridge 1
  4. go to <destination>
  5. move <target> to <destination>
pick_two_obj_and_place:
  1. take <target1> -> go to <destination> -> move <target1> to <destination>
  2. Return to origin -> take <target2> -> go to <destination> -> move <target2> to <destination>
look_at_obj_in_light:
  1. Find and take the target object (e.g., bowl/cd).
  2. go to the observed location of the desklamp.
  3. use desklamp (no need to put the object down).
  4. examine <target>"""


def _alfworld_messages(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    """Details: goal, inventory, history (the last five steps), few_shot. The messages are the observation."""
    details = situation.details
    text = (
        f"[FEW-SHOT EXAMPLES]\n{details.get('few_shot', '')}\n\n"
        f"[SUCCESS ACTION BLUEPRINTS]\n{_ALFWORLD_BLUEPRINTS}\n\n"
        f"[CURRENT SITUATION]\nRecent History: {details.get('history', '')}\n"
        f"Inventory: {details.get('inventory', '')}\nTask Goal: {details.get('goal', '')}\n"
        f"Observation: {_plain(situation)}\nAvailable Actions: {_names_json(shown)}\n\n"
        "[RESPONSE FORMAT]\nWrite a 'Thinking: ...' section to analyze the situation.\n"
        "Output the JSON probability object (sum to 1.0)."
    )
    return [{"role": "system", "content": _ALFWORLD_SYSTEM}, {"role": "user", "content": text}]


def _plain(situation: Situation) -> str:
    """One observation stands as it is; a conversation as a transcript."""
    if len(situation.messages) == 1:
        return text_of(situation.messages[0].get("content"))
    return transcript(situation.messages)


ALFWORLD = Prompt("alfworld", _alfworld_messages, parse_weights, _numbers_schema)

# --- ToolBench -----------------------------------------------------------------------------------------------------

_TOOLBENCH_SYSTEM = (
    'You are a tool-use agent. First write a short Thought, then output a JSON block only with keys: "action_weights"'
    ' (probabilities for EVERY candidate tool, sum to 1) and "action_args" (arguments for EVERY candidate tool; if'
    " Finish prob is low, keep its args null). Do not output prose outside the Thought + JSON. Use only the provided"
    " tool names. If a tool returns an error or no data, please inform the user truthfully and do not make up"
    " information."
)
_TOOLBENCH_EXAMPLE = """\
Respond with a Thought line, then a JSON block. Include probabilities and arguments for EVERY tool.
Example:
Thought: I have checked the API health and it is operational. Now I need to retrieve the project list to answer the \
user's request. I should not finish yet because I haven't got the list.
{
  "action_weights": {
    "Tool_A": 0.1, "Tool_B": 0.1 ...
  },
  "action_args": {
    "Tool_A": {"q": "good_args_A"},
    "Tool_B": {"q": "good_args_B"},
    "Finish": {"final_answer": null}
  }
}
Instructions:
Ensure every candidate tool (including Finish) appears in action_weights and action_args. If Finish prob is low, keep \
its args empty/null; when you choose Finish, put the final_answer there."""


def _toolbench_messages(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    """Details: query, if it is not the first message. Finish is a candidate that the caller lists."""
    tools = [{"name": one.name, "description": one.description, "parameters": dict(one.schema or {})} for one in shown]
    query, later = situation.details.get("query"), situation.messages
    if query is None:
        query, later = text_of(situation.messages[0].get("content")), situation.messages[1:]
    block = json.dumps(tools, ensure_ascii=False, indent=1, default=str)
    text = f"User Query: {query}\nTools: {block}\n\n{_TOOLBENCH_EXAMPLE}"
    messages: list[Message] = [{"role": "system", "content": _TOOLBENCH_SYSTEM}, {"role": "user", "content": text}]
    if later:
        messages.append({"role": "user", "content": f"So far:\n{transcript(later)}"})
    return messages


def _toolbench_schema(candidates: Sequence[Candidate]) -> dict[str, Any]:
    arguments = {candidate.name: {"type": ["object", "null"]} for candidate in candidates}
    return _object_schema(
        {"action_weights": _numbers_schema(candidates), "action_args": {**_object_schema(arguments), "required": []}}
    )


TOOLBENCH = Prompt("toolbench", _toolbench_messages, parse_weights_and_arguments, _toolbench_schema)

# --- OASIS ---------------------------------------------------------------------------------------------------------


def _oasis_messages(situation: Situation, shown: Sequence[Candidate]) -> list[Message]:
    """Details: platform (Twitter or Reddit), name, profile, language. The messages are what the agent sees."""
    details = situation.details
    system = (
        f"You're a {details.get('platform', 'Twitter')} user, and I'll present you with some posts. After you see the"
        " posts, choose some actions from the following functions.\n"
        "Your actions should be consistent with your self-description and personality."
        f" Your name is {details.get('name', '')}. Your profile: {details.get('profile', '')}.\n"
        f"Please output all your comments, posts, and reasoning in {details.get('language', 'Chinese')}.\n"
        "Please perform actions by tool calling."
    )
    example = _oasis_example(shown)
    user = (
        f"You are observing a social media environment: {_plain(situation)}\n"
        "Based on this observation and your profile, estimate the probability of performing each action. Return ONLY a"
        f" JSON object with probabilities (must sum to 1.0).\nAvailable Actions: {', '.join([c.name for c in shown])}\n"
        f'Output Format: {{"action_name": probability, ...}}\nExample: {example}'
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _oasis_example(shown: Sequence[Candidate]) -> str:
    """The paper's example where its actions are on offer: four of them, which sum to one."""
    names = [candidate.name for candidate in shown]
    reddit = "create_comment" in names
    example = {"like_post": 0.3, "create_comment" if reddit else "create_post": 0.25, "follow": 0.2}
    example["refresh" if reddit else "do_nothing"] = 0.25
    return json.dumps({name: value for name, value in example.items() if name in names} or {names[0]: 1.0})


def _parse_oasis(text: str, names: Sequence[str]) -> Stated:
    """The paper's own example leaves actions out, so a model may: they are then recorded as unseen."""
    return parse_weights(text, names, allow_missing=True)


OASIS = Prompt("oasis", _oasis_messages, _parse_oasis, _numbers_schema)

PROMPTS = {prompt.name: prompt for prompt in (GENERAL, ALFWORLD, TOOLBENCH, OASIS)}
