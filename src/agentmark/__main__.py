"""`python -m agentmark`."""

import sys

from agentmark.cli import main

sys.exit(main())
