"""`python -m quadloom_lab bench …`: the command line with the lab's commands, also if the lab is not installed."""

import sys

from quadloom.cli.main import add_commands, run
from quadloom_lab.commands import COMMANDS

add_commands(COMMANDS)
sys.exit(run(sys.argv[1:]))
