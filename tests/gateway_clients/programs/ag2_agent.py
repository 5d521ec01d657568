"""An agent of AG2, for which AgentMark has no adapter: `ag2_agent.py whole|stream COUNT`."""

import sys

from ag2 import Agent
from ag2.config import OpenAIConfig
from errands import count, do_all

from agentmark.testing import Errand


async def run(errand: Errand) -> str | None:
    config = OpenAIConfig(model="gpt-4o", streaming=sys.argv[1] == "stream")
    agent = Agent("errands", prompt="You run errands.", config=config, tools=list(errand.tools))
    reply = await agent.ask(errand.task)
    return reply.body


if __name__ == "__main__":
    do_all(run, count())
