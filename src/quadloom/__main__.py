"""`python -m quadloom` is `quadloom`."""

from quadloom.cli.main import main

main()
