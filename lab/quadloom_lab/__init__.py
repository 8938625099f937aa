"""Quadloom's laboratory: the fake web, simulators, benchmarks and doubles of stores. Not part of the wheel.

Comes in: a checkout of Quadloom. Goes out: the commands `bench` and `simulate`, figures, and what the tests build on.
May import all of Quadloom; Quadloom never imports it.
"""
