"""Claude Code through the Claude Agent SDK, with the errand's tools as an MCP server: `claude_agent.py COUNT`.

The SDK starts Claude Code's own program, which streams, counts tokens and asks small questions beside.
"""

import os
import shutil
import tempfile

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from errands import count, do_all

from agentmark.testing import Errand


def served(errand: Errand):
    """The errand's tools as the SDK wants them."""

    def one(schema: dict):
        @tool(schema["name"], schema["description"], schema["parameters"])
        async def called(arguments: dict) -> dict:
            return {"content": [{"type": "text", "text": errand.call(schema["name"], arguments)}]}

        return called

    return create_sdk_mcp_server("errand", tools=[one(schema) for schema in errand.schemas])


async def run(errand: Errand) -> str | None:
    home = tempfile.mkdtemp()
    environment = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    environment |= {name: os.environ[name] for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")}
    options = ClaudeAgentOptions(
        model="claude-sonnet-5",
        tools=[],
        mcp_servers={"errand": served(errand)},
        allowed_tools=[f"mcp__errand__{schema['name']}" for schema in errand.schemas],
        max_turns=60,
        env=environment,
        cwd=home,
        setting_sources=[],
    )
    said = None
    try:
        async for message in query(prompt=errand.task, options=options):
            if isinstance(message, ResultMessage):
                said = message.result
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return said


if __name__ == "__main__":
    do_all(run, count())
