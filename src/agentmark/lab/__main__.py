"""`python -m agentmark.lab ...`: the lab's commands on their own."""

import argparse
import sys

from agentmark.lab.cli import add_commands, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m agentmark.lab")
    add_commands(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
