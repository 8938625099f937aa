"""Child processes that may be killed at any moment, and threads that report their failure.

In: a module to run and its first message. Out: a `ChildProcess` with a channel, a deadline and a named cause of death.
Every child of Quadloom starts here. May import: model, settings, errors.
"""
