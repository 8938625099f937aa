"""The lab's commands of `quadloom`, found by the entry point group `quadloom.commands`.

In: the options of a command line. Out: figures on stdout. May import `quadloom.cli` and all of the lab.
"""

# Name → (where it is, one line of help), as in `quadloom.cli.main`.
COMMANDS = {
    "bench": ("quadloom_lab.commands.bench:bench", "Measure the pipeline on a fake web on loopback."),
    "reproduce": ("quadloom_lab.commands.reproduce:reproduce", "Run the experiments of the four papers again."),
    "simulate": ("quadloom_lab.commands.simulate:simulate", "Compare refresh policies on a simulated web."),
}
