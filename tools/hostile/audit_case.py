"""The audit as a program uses it: python audit_case.py LOG KEY. Prints the verdict's sentence, or the typed error."""

import sys
from pathlib import Path

from agentmark import AgentMarkError, SharedKey
from agentmark.audit.case import Case


def main(log: str, key: str) -> int:
    try:
        answer = Case(logs=[Path(log)], keys=[SharedKey.load(key)], skip_bad=True, control=True).answer()
    except AgentMarkError as error:
        print(error, file=sys.stderr)
        return 2
    print(answer.verdict.sentence)
    return 0 if answer.verdict.accepted else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
