"""Correct descriptions of things, and the same with one planted mistake: what the checks are measured with."""
