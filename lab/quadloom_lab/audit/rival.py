"""The validator of npm beside our checks: @adobe/structured-data-validator with @marbec/web-auto-extractor.

It runs in one process of Node.js over the same pages and reads the same facts about schema.org, from our table. What it
says is judged generously: any issue that names the wrong word or its property counts as found.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quadloom.documents.checks.vocabulary import Vocabulary
from quadloom.errors import UsageError
from quadloom_lab.audit.mistakes import Planted

_SCRIPT = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const folder = process.argv[1] + "/node_modules/";
const load = (path) => import(pathToFileURL(folder + path).href);
const adobe = await load("@adobe/structured-data-validator/src/index.js");
const Validator = adobe.Validator ?? adobe.default;
const extractor = await load("@marbec/web-auto-extractor/" + process.argv[2]);
const { schema, pages } = JSON.parse(readFileSync(0, "utf8"));
const Extractor = extractor.default.default ?? extractor.default;
const validator = new Validator(schema);
async function check(page) {
  try {
    return await validator.validate(new Extractor({ addLocation: true }).parse(page));
  } catch (error) {
    return [{ severity: "FAILED", issueMessage: String(error) }];
  }
}
console.debug = console.warn = console.error = () => {};
for (const page of pages.slice(0, 50)) await check(page);
const answers = [];
const before = process.cpuUsage();
for (const page of pages) answers.push(await check(page));
const used = process.cpuUsage(before);
const cpu = (used.user + used.system) / 1e3 / pages.length;
process.stdout.write(JSON.stringify({ answers, cpu }));
"""
_WISH = re.compile(r"missing|required", re.IGNORECASE)


class RivalIssue(msgspec.Struct, frozen=True, rename="camel"):
    issue_message: str
    severity: str
    field_names: list[str] = []

    @property
    def text(self) -> str:
        return " ".join((self.issue_message, *self.field_names))


class RivalAnswers(msgspec.Struct, frozen=True):
    """Issues by page, and CPU-ms a page."""

    answers: list[list[RivalIssue]]
    cpu: float


def run_rival(folder: Path, schema: Vocabulary, pages: Sequence[str]) -> RivalAnswers:
    """`folder` holds node_modules with both packages. Raises `UsageError` if they are not there."""
    package = folder / "node_modules/@marbec/web-auto-extractor/package.json"
    if not package.is_file():
        raise UsageError(
            f"{folder} has no node_modules with the rival",
            hint="npm install @adobe/structured-data-validator @marbec/web-auto-extractor",
        )
    described = json.loads(package.read_text(encoding="utf-8"))
    entry = str(described.get("module") or described["main"])
    given = json.dumps({"schema": {"@graph": _graph(schema)}, "pages": list(pages)})
    command = ["node", "--input-type=module", "-e", _SCRIPT, str(folder.resolve()), entry]
    done = subprocess.run(command, input=given.encode(), capture_output=True, check=False, timeout=600)
    if done.returncode:
        raise UsageError(f"the rival failed: {done.stderr.decode(errors='replace')[-300:]}")
    return msgspec.json.decode(done.stdout, type=RivalAnswers)


def finds(mistake: Planted, issues: Sequence[RivalIssue]) -> bool:
    words = {mistake.token, mistake.about} - {""}
    return any(one.severity != "FAILED" and word in one.text for one in issues for word in words)


def alarms(issues: Sequence[RivalIssue]) -> bool:
    """Whether a correct page is told of an error, other than that it lacks something for a rich result."""
    return any(one.severity != "WARNING" and not _WISH.search(one.issue_message) for one in issues)


def _graph(schema: Vocabulary) -> list[dict[str, object]]:
    """Our table in the form that schema.org publishes."""
    classes: list[dict[str, object]] = [
        {"@id": f"schema:{name}", "@type": "rdfs:Class", "rdfs:subClassOf": [{"@id": f"schema:{one}"} for one in above]}
        for name, above in schema.types.items()
    ]
    properties: list[dict[str, object]] = [
        {
            "@id": f"schema:{one.name}",
            "@type": "rdf:Property",
            "schema:domainIncludes": [{"@id": f"schema:{name}"} for name in sorted(one.domains)],
        }
        for one in schema.properties.values()
    ]
    return classes + properties
