"""Pages of the documentation site that are not in docs/: files of the repository's root, and the API by its docstrings.

A hook of mkdocs (mkdocs.yml). Links between docs/ and the root work in the repository as they are; here they are
rewritten, those of images too. A link to a source file, which the site does not have, becomes its name.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "project"
_OF_THE_ROOT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_API = """# Library

What is public and stays so is listed under [stability](stability.md). This page has the docstrings.

## Functions

::: quadloom.documents.transform.transform
::: quadloom.crawling.inspect.inspection.inspect
::: quadloom.warehouse.open_warehouse
::: quadloom.settings.loading.load

## A warehouse

::: quadloom.warehouse.Warehouse
::: quadloom.asking.questions.WarehouseQueries
::: quadloom.crawling.run.requests.CrawlRequests
::: quadloom.crawling.run.scope.CrawlScope
::: quadloom.crawling.subscriptions.service.Subscriptions
::: quadloom.maintenance.tasks.Maintenance

## For plug-ins

::: quadloom.documents.syntaxes.registry.Context
::: quadloom.errors
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in _OF_THE_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"{FOLDER}/{name}", content=text))
    files.append(File.generated(config, "reference/api.md", content=_API))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    """Rewrite links as the files are in the site."""
    source = page.file.src_uri
    place = posixpath.dirname(source.removeprefix(f"{FOLDER}/")) if source.startswith(f"{FOLDER}/") else None
    folder = place if place is not None else posixpath.join("docs", posixpath.dirname(source))

    def rewritten(match: re.Match[str]) -> str:
        text, target, anchor = match["text"], match["target"], match["anchor"] or ""
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        here = posixpath.dirname(source) or "."
        for found in (path.removeprefix("docs/"), f"{FOLDER}/{path}", f"{path.removeprefix('docs/')}/README.md"):
            if files.get_file_from_path(found) is not None:
                return f"{match['image']}[{text}]({posixpath.relpath(found, here)}{anchor})"
        return text

    return _LINK.sub(rewritten, markdown)
