"""`python -m quadloom.cli` is `quadloom`."""

from quadloom.cli.main import main

main()
