"""An agent of OpenAI's Agents SDK: `openai_agents_agent.py responses|chat|stream COUNT`."""

import sys

from agents import Agent, Runner, function_tool, set_default_openai_api, set_tracing_disabled
from errands import count, do_all

from agentmark.testing import Errand


async def run(errand: Errand) -> str:
    agent = Agent(name="Errands", model="gpt-4o", tools=[function_tool(tool) for tool in errand.tools])
    if sys.argv[1] == "stream":
        done = Runner.run_streamed(agent, errand.task, max_turns=100)
        async for _ in done.stream_events():
            pass
    else:
        done = await Runner.run(agent, errand.task, max_turns=100)
    return str(done.final_output)


if __name__ == "__main__":
    set_tracing_disabled(True)  # Traces would go to OpenAI.
    if sys.argv[1] == "chat":
        set_default_openai_api("chat_completions")
    do_all(run, count())
