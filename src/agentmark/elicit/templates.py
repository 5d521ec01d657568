"""What a model's own chat template can show of a conversation, and the conversation written so that all of it is.

Templates refuse what they do not know, or leave it out without a word. So each is shown a small conversation once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentmark.elicit.conversation import in_words, merged, settled, texts_only
from agentmark.elicit.situation import Candidate, Message

# Writes messages, and the tools that go with them, as the template does; raises if it refuses them.
Render = Callable[[Sequence[Message], Sequence[Candidate]], str]


@dataclass(frozen=True, slots=True)
class TemplateForm:
    """How a conversation is written for one template."""

    calls: bool = True
    # Tool output in the role `tool`.
    outputs: bool = True
    merged: bool = False
    system: bool = True
    tools: bool = True


# From the agent's own messages to what the plainest template takes.
_FORMS = (
    TemplateForm(),
    TemplateForm(calls=False),
    TemplateForm(calls=False, outputs=False),
    TemplateForm(calls=False, outputs=False, merged=True),
    TemplateForm(calls=False, outputs=False, merged=True, system=False),
)
_TOOL = Candidate("probe_tool", "PROBE-TOOL")
_PROBE: tuple[Message, ...] = (
    {"role": "system", "content": "PROBE-SYSTEM"},
    {"role": "user", "content": "PROBE-USER"},
    {"role": "user", "content": "PROBE-NEXT"},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "probe_call", "arguments": {"x": "PROBE-ARGUMENT"}}]},
    {"role": "tool", "content": "PROBE-OUTPUT"},
    {"role": "user", "content": "PROBE-LAST"},
)
_SHOWN = ("SYSTEM", "USER", "NEXT", "ARGUMENT", "OUTPUT", "LAST")


def form_for(render: Render) -> TemplateForm:
    """The first form of which the template shows everything; the plainest, if there is none."""
    for form in _FORMS:
        for tried in (form, replace(form, tools=False)):
            if _shows(render, tried):
                return tried
    return replace(_FORMS[-1], tools=False)


def _shows(render: Render, form: TemplateForm) -> bool:
    try:
        text = render(written(_PROBE, form), [_TOOL] if form.tools else [])
    except Exception:
        # Whatever a template raises, it is a form that it does not take.
        return False
    return all(f"PROBE-{word}" in text for word in (*_SHOWN, *(["TOOL"] if form.tools else [])))


def written(messages: Sequence[Message], form: TemplateForm) -> list[dict[str, Any]]:
    """A conversation in a form that the template shows."""
    written = texts_only(settled(messages))
    if not form.calls:
        written = in_words(written, outputs=not form.outputs)
    written = [{**message, "role": "system"} if message["role"] == "developer" else message for message in written]
    if not form.system:
        written = [{**message, "role": "user"} if message["role"] == "system" else message for message in written]
    return merged(written) if form.merged else written
