"""The web of `quadloom demo`."""
