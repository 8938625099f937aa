"""Three questions that the demo answers after its crawl, and that a newcomer can vary."""

from __future__ import annotations

from typing import Literal

import msgspec


class Question(msgspec.Struct, frozen=True):
    """`command` is what to type after `quadloom`; `query` is its argument: words, or a type. `where` and `sites` are
    options of `table`."""

    title: str
    command: Literal["search", "table"]
    query: str
    where: str = ""
    sites: int = 0

    @property
    def arguments(self) -> str:
        """As typed in a shell."""
        where = f" --where '{self.where}'" if self.where else ""
        return f"{self.command} {self.query}{where}" + (f" --sites {self.sites}" if self.sites else "")


QUESTIONS: tuple[Question, ...] = (
    Question("Which pages mention a lighthouse?", "search", "lighthouse"),
    Question("Which events are in Ghent?", "table", "Event", where="location/address/addressLocality is Ghent"),
    Question("Who is described on two sites?", "table", "Person", sites=2),
)
