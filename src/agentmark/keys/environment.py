"""Where a key is looked for if no file is named. By itself, so that a command can say so without loading keys."""

ENVIRONMENT_VARIABLE = "AGENTMARK_KEY"
