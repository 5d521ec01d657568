"""LangChain's agent on its clients for both vendors: `langchain_agent.py openai|responses|anthropic|stream COUNT`."""

import sys

from errands import count, do_all
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI

from agentmark.testing import Errand


def model(way: str):
    if way == "anthropic":
        return ChatAnthropic(model="claude-sonnet-5", max_tokens=2000)
    return ChatOpenAI(model="gpt-4o", use_responses_api=way == "responses")


def run(errand: Errand) -> str:
    way = sys.argv[1]
    agent = create_agent(model(way), list(errand.tools))
    ask, limit = {"messages": [("user", errand.task)]}, {"recursion_limit": 100}
    if way == "stream":
        parts = agent.stream(ask, limit, stream_mode=["messages", "values"])
        end = [part for kind, part in parts if kind == "values"][-1]
    else:
        end = agent.invoke(ask, limit)
    return end["messages"][-1].text


if __name__ == "__main__":
    do_all(run, count())
