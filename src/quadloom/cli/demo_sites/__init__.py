"""The web of `quadloom demo`: six small sites in one data file, a loopback server for them, and three questions.

In: `sites.json.gz`, rendered by the lab's `quadloom_lab.fakeweb.demo_data`. Out: `DemoServer`, `QUESTIONS`. Imports
nothing of Quadloom.
"""

from quadloom.cli.demo_sites.questions import QUESTIONS, Question
from quadloom.cli.demo_sites.server import DemoServer

__all__ = ["QUESTIONS", "DemoServer", "Question"]
