"""How the lab is told of a language model, and the paper's own models."""

from dataclasses import dataclass

# Where a user's own model files are; and the secrets, which have no place among arguments. The command line reads them.
GGUF_VARIABLE = "AGENTMARK_GGUF"
API_KEY_VARIABLE, USUAL_API_KEY_VARIABLE = "AGENTMARK_API_KEY", "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class Preset:
    """A model as the paper used it: where it is, what it is called, and how it was asked on each benchmark."""

    base_url: str
    model: str
    temperatures: dict[str, float]


# The paper: DeepSeek-Chat with temperature 1.0 on ALFWorld and 0.7 on ToolBench; Gemini 2.0 Flash beside it,
# whose temperatures the paper does not state: taken to be the same.
PRESETS = {
    "deepseek": Preset("https://api.deepseek.com/v1", "deepseek-chat", {"alfworld": 1.0, "toolbench": 0.7}),
    "gemini": Preset(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "gemini-2.0-flash",
        {"alfworld": 1.0, "toolbench": 0.7},
    ),
}
