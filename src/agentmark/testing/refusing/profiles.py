"""Who refuses what: one profile for each provider of today that a marked agent has to live with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """An error, in no API's shape yet. `{model}` in a message becomes the model's name."""

    status: int
    message: str
    # As the vendors of OpenAI's shape name them; those of other shapes have their own words for the status.
    kind: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a provider refuses or passes over; without any of it, it takes everything."""

    name: str
    # Who behaves so.
    who: str = ""
    forced_choice: Refused | None = None
    temperature: Refused | None = None
    max_tokens: Refused | None = None
    logprobs: Refused | None = None
    json_schema: Refused | None = None
    several: Refused | None = None
    decisions: Refused | None = None
    prefill: Refused | None = None
    # Refuses every request, or every k-th.
    always: Refused | None = None
    sometimes: Refused | None = None
    every: int = 3
    # Every k-th stream breaks off; 0: none does.
    cuts_every: int = 0
    # Takes the parameter and does not do what it says.
    ignores_schema: bool = False
    ignores_count: bool = False
    ignores_logprobs: bool = False
    # What it takes log-probabilities with, if it takes them: so many at most, so many tokens at least, and no thinking.
    max_top_logprobs: int = 20
    min_logprob_tokens: int = 1
    logprobs_want_no_effort: bool = False
    # Thinks, in thinking blocks or their like, unless a request turns it off; or in the text itself.
    thinks: bool = False
    thinks_aloud: bool = False
    # Binds thinking blocks to all that stood before them (Anthropic: preserved thinking).
    binds_thinking: bool = False
    # Wants what it thought back with the calls that came of it.
    wants_thinking_back: Refused | None = None
    # Takes a last message "Call X now." for an instruction.
    obeys: bool = True
    # The shape of its errors on chat completions: a list around Google's own, at Gemini's.
    lists_errors: bool = False


_UNSUPPORTED_CHOICE = Refused(400, 'tool_choice: type "tool" and "any" are not supported for this model.')
_TEMPERATURE_DEPRECATED = Refused(400, "`temperature` is deprecated for this model.")
_NO_PREFILL = Refused(
    400, "This model does not support assistant message prefill. The conversation must end with a user message."
)
_DEEPSEEK_CODE = "invalid_request_error"
_DEEPSEEK = {
    "forced_choice": Refused(400, "Thinking mode does not support this tool_choice", code=_DEEPSEEK_CODE),
    "json_schema": Refused(400, "This response_format type is unavailable now", code=_DEEPSEEK_CODE),
    "several": Refused(400, "Invalid n value (currently only n = 1 is supported)", code=_DEEPSEEK_CODE),
}
_RENAMED_LIMIT = Refused(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    param="max_tokens",
    code="unsupported_parameter",
)
_FIXED_TEMPERATURE = Refused(
    400,
    "Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is"
    " supported.",
    param="temperature",
    code="unsupported_value",
)
_NO_SUCH_ROUTE = Refused(404, "Invalid URL (POST /v1/{route})")

_LISTED = (
    Profile(name="plain", who="takes everything"),
    Profile(
        name="claude-preserved-thinking",
        who="Claude Fable 5.1 and Opus 5.5, accounts since 31 August 2026",
        forced_choice=_UNSUPPORTED_CHOICE,
        temperature=_TEMPERATURE_DEPRECATED,
        prefill=_NO_PREFILL,
        several=Refused(400, "n: must be exactly 1"),
        ignores_logprobs=True,
        decisions=_NO_SUCH_ROUTE,
        thinks=True,
        binds_thinking=True,
    ),
    Profile(name="claude-forced-choice", who="other recent Claude models", forced_choice=_UNSUPPORTED_CHOICE),
    Profile(
        name="deepseek-thinking",
        who="DeepSeek V4, which thinks unless told not to",
        decisions=_NO_SUCH_ROUTE,
        thinks=True,
        **_DEEPSEEK,  # type: ignore[arg-type]
    ),
    Profile(
        name="deepseek-wants-reasoning",
        who="the same, as it treats a client that drops `reasoning_content` beside tool calls",
        decisions=_NO_SUCH_ROUTE,
        thinks=True,
        wants_thinking_back=Refused(
            400, "The `reasoning_content` in the thinking mode must be passed back to the API.", code=_DEEPSEEK_CODE
        ),
        **_DEEPSEEK,  # type: ignore[arg-type]
    ),
    Profile(
        name="gpt-5-logprobs-403",
        who="gpt-5 and its like",
        logprobs=Refused(403, "You are not allowed to request logprobs from this model"),
        temperature=_FIXED_TEMPERATURE,
        max_tokens=_RENAMED_LIMIT,
    ),
    Profile(
        name="azure-logprobs-422",
        who="the same models at Azure",
        logprobs=Refused(422, "The deployment doesn't support logprobs request parameter.", code="422"),
        temperature=_FIXED_TEMPERATURE,
        max_tokens=_RENAMED_LIMIT,
        decisions=Refused(404, "Resource not found", kind="", code="404"),
    ),
    Profile(
        name="gpt-5-few-logprobs",
        who="the newest of them: five log-probabilities at most, from four tokens on, and only without effort",
        temperature=_FIXED_TEMPERATURE,
        max_tokens=_RENAMED_LIMIT,
        max_top_logprobs=5,
        min_logprob_tokens=4,
        logprobs_want_no_effort=True,
    ),
    Profile(
        name="gemini-logprobs-400",
        who="Gemini, by its own API and by OpenAI's",
        logprobs=Refused(400, 'Invalid JSON payload received. Unknown name "logprobs": Cannot find field.'),
        decisions=Refused(404, "models/decisions is not found for API version v1beta"),
        lists_errors=True,
    ),
    Profile(
        name="gemini-wants-signatures",
        who="Gemini 3, which thinks and wants its thought signatures back",
        thinks=True,
        wants_thinking_back=Refused(
            400,
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work"
            " correctly, and missing thought_signature may lead to degraded model performance.",
        ),
        lists_errors=True,
    ),
    Profile(
        name="decisions-401",
        who="gateways that ask for a key before they know the route",
        decisions=Refused(401, "Missing or invalid credentials for this route.", kind="authentication_error"),
    ),
    Profile(
        name="decisions-400",
        who="Fireworks, for models without decisions",
        decisions=Refused(400, "Model {model} does not support this API."),
    ),
    Profile(name="thinks-first", who="vLLM with a thinking model and no reasoning parser", thinks_aloud=True),
    Profile(
        name="no-json-schema",
        who="servers without structured output",
        json_schema=Refused(
            400,
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            param="response_format",
        ),
    ),
    Profile(name="ignores-json-schema", who="servers that pass response_format over", ignores_schema=True),
    Profile(
        name="no-n",
        who="most that speak OpenAI's shape",
        several=Refused(400, "Only n = 1 is supported.", param="n", code="unsupported_value"),
    ),
    Profile(name="ignores-n", who="some that speak OpenAI's shape", ignores_count=True),
    Profile(
        name="rate-limited",
        who="anyone on a small plan: every third request is too many",
        sometimes=Refused(
            429,
            "Rate limit reached for {model}. Please try again in 1s.",
            kind="requests",
            code="rate_limit_exceeded",
            retry_after_s=1,
        ),
    ),
    Profile(
        name="overloaded",
        who="anyone on a bad day: every third request finds no room",
        sometimes=Refused(503, "The engine is currently overloaded, please try again later", kind="server_error"),
    ),
    Profile(name="stream-cut", who="any long way between: every third stream breaks off", cuts_every=3),
    Profile(name="disobeys", who="a model that does not do what the last message says", obeys=False),
    Profile(
        name="bad-key",
        who="anyone, with a wrong key",
        always=Refused(401, "Incorrect API key provided.", kind="invalid_request_error", code="invalid_api_key"),
    ),
    Profile(
        name="no-such-model",
        who="anyone, asked for a model they have not",
        always=Refused(
            404,
            "The model `{model}` does not exist or you do not have access to it.",
            code="model_not_found",
        ),
    ),
)

PROFILES = {profile.name: profile for profile in _LISTED}
