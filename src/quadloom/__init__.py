"""Quadloom weaves the web into a graph you can query."""

__version__ = "0.1.0"
