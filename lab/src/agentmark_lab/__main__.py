"""`python -m agentmark_lab ...`: the lab's commands on their own."""

import argparse
import sys

from agentmark_lab.cli import add_commands, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m agentmark_lab")
    add_commands(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
