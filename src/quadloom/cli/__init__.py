"""The command line. In: arguments, TOML, environment. Out: data on stdout, everything else on stderr, an exit code.

`main.py` has the table of commands and turns errors into messages; each command is in the file that has its name, or
that of its family. May import everything; nothing imports it but the lab's commands.
"""
