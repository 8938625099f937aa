"""The command line. In: arguments, TOML, environment. Out: data on stdout, everything else on stderr, an exit code.

`main.py` has the commands' names and the error boundary; each command lives in the file named after what it is about.
"""
