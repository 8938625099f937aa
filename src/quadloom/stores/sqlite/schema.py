"""All tables of `quadloom.db`, as migrations: version n is the state after the first n of them.

A migration that was released is never edited: a change of the schema is a further migration at the end of `SCHEMA`.
"""

from __future__ import annotations

from quadloom.stores.sql.catalog import BEHIND

Migration = tuple[str, ...]  # statements, run in one transaction

_FRONTIER = (
    """CREATE TABLE host(
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, site TEXT NOT NULL, address TEXT NOT NULL DEFAULT '',
        delay REAL NOT NULL DEFAULT 0, next_at REAL NOT NULL DEFAULT 0, blocked_until REAL NOT NULL DEFAULT 0,
        block_reason TEXT NOT NULL DEFAULT '', ready_at REAL NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
        queued INTEGER NOT NULL DEFAULT 0, pages INTEGER NOT NULL DEFAULT 0, spent REAL NOT NULL DEFAULT 0,
        budget REAL NOT NULL DEFAULT 0, crawl_delay REAL NOT NULL DEFAULT 0)""",
    "CREATE INDEX host_ready ON host(ready_at) WHERE queued > 0",
    "CREATE INDEX host_blocked ON host(blocked_until) WHERE blocked_until > 0",
    "CREATE TABLE robots(host_id INTEGER PRIMARY KEY, data BLOB NOT NULL, expires REAL NOT NULL)",
    """CREATE TABLE url(
        host_id INTEGER NOT NULL, fingerprint INTEGER NOT NULL, href TEXT NOT NULL, key TEXT, state INTEGER NOT NULL,
        priority INTEGER NOT NULL, depth INTEGER NOT NULL, score REAL NOT NULL, kind TEXT NOT NULL,
        via INTEGER NOT NULL, anchor TEXT NOT NULL, due REAL NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 1,
        visits INTEGER NOT NULL DEFAULT 0, outcome TEXT NOT NULL DEFAULT '', etag TEXT NOT NULL DEFAULT '',
        last_modified TEXT NOT NULL DEFAULT '', token REAL NOT NULL DEFAULT -1,
        PRIMARY KEY(host_id, fingerprint)) WITHOUT ROWID""",
    """CREATE TABLE queue(
        host_id INTEGER NOT NULL, priority INTEGER NOT NULL, first REAL NOT NULL, second REAL NOT NULL,
        fingerprint INTEGER NOT NULL, PRIMARY KEY(host_id, priority, first, second, fingerprint)) WITHOUT ROWID""",
    """CREATE TABLE later(
        due REAL NOT NULL, host_id INTEGER NOT NULL, fingerprint INTEGER NOT NULL,
        PRIMARY KEY(due, host_id, fingerprint)) WITHOUT ROWID""",
    "CREATE TABLE frontier_value(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
)

_CATALOG = (
    """CREATE TABLE page(
        fingerprint INTEGER PRIMARY KEY, host TEXT NOT NULL, outcome TEXT NOT NULL, kind TEXT NOT NULL,
        status INTEGER NOT NULL, fetched_at REAL NOT NULL, quads_digest BLOB NOT NULL, text_digest BLOB NOT NULL,
        indexed_quads BLOB NOT NULL DEFAULT x'', indexed_text BLOB NOT NULL DEFAULT x'', record BLOB NOT NULL)""",
    "CREATE INDEX page_host ON page(host, fingerprint)",
    f"CREATE INDEX page_behind ON page(fetched_at) WHERE {BEHIND}",
    """CREATE TABLE visit(
        fingerprint INTEGER NOT NULL, fetched_at REAL NOT NULL, record BLOB NOT NULL,
        PRIMARY KEY(fingerprint, fetched_at)) WITHOUT ROWID""",
    "CREATE TABLE count(name TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE value(name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
)

# AUTOINCREMENT: an id is never used again, also after the newest notice was trimmed.
_OUTBOX = (
    """CREATE TABLE notice(
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, subscription TEXT NOT NULL, record BLOB NOT NULL)""",
    "CREATE INDEX notice_subscription ON notice(subscription, id)",
    "CREATE INDEX notice_at ON notice(at)",
    "CREATE TABLE delivery(subscription TEXT PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
)

# Phases run apart: what a page waits for (`quadloom.model.phase.Owed`), which process works on it, and what processes
# that do not own the frontier have for the one that does.
_PHASES = (
    "ALTER TABLE page ADD COLUMN owed INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX page_owed ON page(owed, fetched_at, fingerprint) WHERE owed > 0",
    "CREATE TABLE page_lease(fingerprint INTEGER PRIMARY KEY, owner TEXT NOT NULL)",
    "CREATE INDEX page_lease_owner ON page_lease(owner)",
    "CREATE TABLE frontier_inbox(seq INTEGER PRIMARY KEY AUTOINCREMENT, batch BLOB NOT NULL)",
)

SCHEMA: tuple[Migration, ...] = (_FRONTIER + _CATALOG + _OUTBOX, _PHASES)
