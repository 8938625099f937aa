"""A contract for import-linter: a package imports only what is listed; everything else of this project is forbidden.

The layers say what may not be imported; a list of what may is shorter for packages near the bottom, and a package that
is added later is forbidden to them without a change here.
"""

from __future__ import annotations

from importlinter import Contract, ContractCheck, fields, output


class AllowedImports(Contract):
    """`source` may import itself and `allowed` (packages with all that is in them), directly."""

    source = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph, verbose):  # type: ignore[no-untyped-def]
        own = (self.source, *self.allowed)
        inside = {self.source, *graph.find_descendants(self.source)}
        wrong = sorted(
            (importer, imported)
            for importer in inside
            for imported in graph.find_modules_directly_imported_by(importer)
            if not any(imported == name or imported.startswith(f"{name}.") for name in own)
        )
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check):  # type: ignore[no-untyped-def]
        for importer, imported in check.metadata["wrong"]:
            output.print_error(f"{importer} imports {imported}")
