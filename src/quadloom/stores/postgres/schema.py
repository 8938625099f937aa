"""All tables on PostgreSQL, as migrations: version n is the state after the first n of them.

The tables are those of SQLite (`stores.sqlite.schema`), with a shard on every row that is searched by ownership. The
queue has only inserts and deletes and the host rows many updates, so both leave room and are vacuumed early: dead rows
before the first live one make a queue on PostgreSQL slow. Bodies of pages are not stored here.
"""

from __future__ import annotations

from itertools import pairwise

from quadloom.stores.frontier.policy import UrlState
from quadloom.stores.shards import SHARDS
from quadloom.stores.sql.catalog import BEHIND

# A shard's lease lasts as long as its owner's row in `worker` is renewed: one row a heartbeat, whatever it owns.
_SHARDS = (
    """CREATE TABLE shard_lease(
        shard smallint PRIMARY KEY, owner text NOT NULL DEFAULT '', epoch bigint NOT NULL DEFAULT 0,
        clean boolean NOT NULL DEFAULT true) WITH (fillfactor = 50)""",
    f"INSERT INTO shard_lease(shard) SELECT generate_series(0, {SHARDS - 1})",
    "CREATE TABLE worker(name text PRIMARY KEY, until timestamptz NOT NULL, started timestamptz NOT NULL)",
    "CREATE TABLE leased(worker text PRIMARY KEY, pairs bytea NOT NULL)",
    """CREATE TABLE link_outbox(
        shard_to smallint NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY, batch bytea NOT NULL,
        PRIMARY KEY(shard_to, seq))""",
)

_FRONTIER = (
    """CREATE TABLE host(
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, shard smallint NOT NULL, name text NOT NULL UNIQUE,
        site text NOT NULL, address text NOT NULL DEFAULT '', delay float8 NOT NULL DEFAULT 0,
        next_at float8 NOT NULL DEFAULT 0, blocked_until float8 NOT NULL DEFAULT 0,
        block_reason text NOT NULL DEFAULT '', ready_at float8 NOT NULL DEFAULT 0, failures int NOT NULL DEFAULT 0,
        queued bigint NOT NULL DEFAULT 0, pages bigint NOT NULL DEFAULT 0, spent float8 NOT NULL DEFAULT 0,
        budget float8 NOT NULL DEFAULT 0, crawl_delay float8 NOT NULL DEFAULT 0)
        WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02)""",
    "CREATE INDEX host_ready ON host(ready_at, shard) WHERE queued > 0",
    "CREATE INDEX host_blocked ON host(blocked_until) WHERE blocked_until > 0",
    "CREATE TABLE robots(host_id bigint PRIMARY KEY, data bytea NOT NULL, expires float8 NOT NULL)",
    """CREATE TABLE url(
        host_id bigint NOT NULL, fingerprint bigint NOT NULL, href text NOT NULL, key text, state smallint NOT NULL,
        priority smallint NOT NULL, depth int NOT NULL, score float8 NOT NULL, kind text NOT NULL, via bigint NOT NULL,
        anchor text NOT NULL, due float8 NOT NULL DEFAULT 0, attempt int NOT NULL DEFAULT 1,
        visits int NOT NULL DEFAULT 0, outcome text NOT NULL DEFAULT '', etag text NOT NULL DEFAULT '',
        last_modified text NOT NULL DEFAULT '', token float8 NOT NULL DEFAULT -1,
        PRIMARY KEY(host_id, fingerprint)) WITH (fillfactor = 80)""",
    f"CREATE INDEX url_over_budget ON url(host_id) WHERE state = {int(UrlState.OVER_BUDGET)}",
    """CREATE TABLE queue(
        host_id bigint NOT NULL, priority smallint NOT NULL, first float8 NOT NULL, second float8 NOT NULL,
        fingerprint bigint NOT NULL, PRIMARY KEY(host_id, priority, first, second, fingerprint))
        WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0)""",
    """CREATE TABLE later(
        shard smallint NOT NULL, due float8 NOT NULL, host_id bigint NOT NULL, fingerprint bigint NOT NULL,
        PRIMARY KEY(shard, due, host_id, fingerprint)) WITH (autovacuum_vacuum_scale_factor = 0.02)""",
    """CREATE TABLE frontier_count(
        slot smallint NOT NULL, what smallint NOT NULL, number bigint NOT NULL, PRIMARY KEY(slot, what))
        WITH (fillfactor = 50)""",
    "CREATE TABLE frontier_value(name text PRIMARY KEY, value bytea NOT NULL)",
)

_CATALOG = (
    """CREATE TABLE page(
        fingerprint bigint PRIMARY KEY, shard smallint NOT NULL, host text NOT NULL, outcome text NOT NULL,
        kind text NOT NULL, status int NOT NULL, fetched_at float8 NOT NULL, quads_digest bytea NOT NULL,
        text_digest bytea NOT NULL, indexed_quads bytea NOT NULL DEFAULT '', indexed_text bytea NOT NULL DEFAULT '',
        record bytea NOT NULL) WITH (fillfactor = 80)""",
    "CREATE INDEX page_host ON page(host, fingerprint)",
    f"CREATE INDEX page_behind ON page(fetched_at, fingerprint) WHERE {BEHIND}",
    """CREATE TABLE visit(
        fingerprint bigint NOT NULL, fetched_at float8 NOT NULL, record bytea NOT NULL,
        PRIMARY KEY(fingerprint, fetched_at))""",
    """CREATE TABLE count(
        slot smallint NOT NULL, name text COLLATE "C" NOT NULL, number bigint NOT NULL, PRIMARY KEY(slot, name))
        WITH (fillfactor = 50)""",
    'CREATE TABLE value(name text COLLATE "C" PRIMARY KEY, data bytea NOT NULL)',
)

_OUTBOX = (
    """CREATE TABLE notice(
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at float8 NOT NULL, subscription text NOT NULL,
        record bytea NOT NULL)""",
    "CREATE INDEX notice_subscription ON notice(subscription, id)",
    "CREATE INDEX notice_at ON notice(at)",
    "CREATE TABLE delivery(subscription text PRIMARY KEY, record bytea NOT NULL)",
)

_BUS = (
    """CREATE TABLE event(
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id bigint NOT NULL, record bytea NOT NULL)""",
    "CREATE INDEX event_id ON event(id)",
)

_TEXT = (
    """CREATE TABLE text_document(
        id text COLLATE "C" PRIMARY KEY, title text NOT NULL, excerpt text NOT NULL, types text[] NOT NULL,
        vocabularies text[] NOT NULL, site text NOT NULL, host text NOT NULL, language text NOT NULL,
        kind text NOT NULL, fetched_at float8 NOT NULL, year smallint NOT NULL, words tsvector NOT NULL)""",
    "CREATE INDEX text_document_words ON text_document USING gin(words)",
    "CREATE INDEX text_document_types ON text_document USING gin(types)",
    "CREATE INDEX text_document_site ON text_document(site)",
    "CREATE INDEX text_document_fetched_at ON text_document(fetched_at)",
)

# Phases run apart: what a page waits for (`quadloom.model.phase.Owed`) and which worker works on it. `fetches`: the
# worker takes shards; one that only transforms, say, does not, and has no share in them.
_PHASES = (
    "ALTER TABLE page ADD COLUMN owed smallint NOT NULL DEFAULT 0",
    "CREATE INDEX page_owed ON page(owed, fetched_at, fingerprint) WHERE owed > 0",
    "CREATE TABLE page_lease(fingerprint bigint PRIMARY KEY, owner text NOT NULL)",
    "CREATE INDEX page_lease_owner ON page_lease(owner)",
    "ALTER TABLE worker ADD COLUMN fetches boolean NOT NULL DEFAULT true",
)

# The cluster as a whole. `worker.record`: what a worker says about itself with each heartbeat. `worker_command`:
# requests of people; `target` is a worker's name, empty = all; those with a `standing` hold for workers that join
# later, too. `shard_load`: the work that a shard's owner saw last. `shard_lease.wanted_by`: a command that waits for
# the shard. `event.settled`: it is about a page that was read. Hosts with work are found shard by shard, so that a
# worker never reads rows of others.
_CLUSTER = (
    "ALTER TABLE worker ADD COLUMN seen timestamptz NOT NULL DEFAULT clock_timestamp()",
    "ALTER TABLE worker ADD COLUMN record bytea NOT NULL DEFAULT ''",
    """CREATE TABLE worker_command(
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
        target text NOT NULL, standing text NOT NULL, request bytea NOT NULL)""",
    """CREATE TABLE worker_answer(
        command bigint NOT NULL, worker text NOT NULL, record bytea NOT NULL, PRIMARY KEY(command, worker))""",
    "CREATE TABLE shard_load(shard smallint PRIMARY KEY, work float8 NOT NULL) WITH (fillfactor = 50)",
    f"INSERT INTO shard_load SELECT generate_series(0, {SHARDS - 1}), 0",
    "ALTER TABLE shard_lease ADD COLUMN wanted_by text NOT NULL DEFAULT ''",
    "DROP INDEX host_ready",
    "CREATE INDEX host_ready ON host(shard, ready_at) WHERE queued > 0",
    "ALTER TABLE event ADD COLUMN settled boolean NOT NULL DEFAULT true",
    "CREATE INDEX event_settled ON event(seq) WHERE settled",
)

# A host's id begins with its shard, so a range of ids is a range of shards: the tables of URLs are cut by it into parts
# of 32 shards, without another column in their keys. Pages are asked for by fingerprint alone, and are cut by that.
# Each part is vacuumed, indexed and backed up by itself.
HOST_BITS = 40  # of a host's id, below those of its shard
PARTS = 8
_ID = f"(h.shard::bigint << {HOST_BITS}) + h.id"


def _parts(table: str, limits: list[int], options: str) -> tuple[str, ...]:
    """The parts of a table, between these limits."""
    ends = ["MINVALUE", *map(str, limits), "MAXVALUE"]
    return tuple(
        f"CREATE TABLE {table}_{number:02d} PARTITION OF {table} FOR VALUES FROM ({low}) TO ({high}) WITH ({options})"
        for number, (low, high) in enumerate(pairwise(ends))
    )


def _cut(
    table: str, key: str, limits: list[int], options: str, copied: str, indexes: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Statements that replace a table by one in parts with the same rows and indexes."""
    return (
        f"ALTER TABLE {table} RENAME TO {table}_whole",
        f"ALTER INDEX {table}_pkey RENAME TO {table}_whole_pkey",
        *(f"DROP INDEX {index.split()[2]}" for index in indexes),
        f"CREATE TABLE {table}(LIKE {table}_whole INCLUDING DEFAULTS, PRIMARY KEY({key})) "
        f"PARTITION BY RANGE ({key.partition(',')[0]})",
        *_parts(table, limits, options),
        copied,
        *indexes,
        f"DROP TABLE {table}_whole",
    )


_SHARD_LIMITS = [part * SHARDS // PARTS for part in range(1, PARTS)]
_HOST_LIMITS = [shard << HOST_BITS for shard in _SHARD_LIMITS]
_FINGERPRINT_LIMITS = [part * (1 << 64) // PARTS - (1 << 63) for part in range(1, PARTS)]
_URL_REST = (
    "fingerprint, href, key, state, priority, depth, score, kind, via, anchor, due, attempt, visits, outcome, etag, "
    "last_modified, token"
)
_PARTITIONS = (
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL enable_hashjoin = on",
    "ALTER TABLE host ALTER COLUMN id DROP IDENTITY",
    "CREATE SEQUENCE host_number",
    "SELECT setval('host_number', coalesce(max(id), 0) + 1, false) FROM host",
    *_cut(
        "url",
        "host_id, fingerprint",
        _HOST_LIMITS,
        "fillfactor = 80",
        f"INSERT INTO url(host_id, {_URL_REST}) SELECT {_ID}, "
        f"{', '.join(f'u.{name}' for name in _URL_REST.split(', '))} FROM url_whole u JOIN host h ON h.id = u.host_id",
        (f"CREATE INDEX url_over_budget ON url(host_id) WHERE state = {int(UrlState.OVER_BUDGET)}",),
    ),
    *_cut(
        "queue",
        "host_id, priority, first, second, fingerprint",
        _HOST_LIMITS,
        "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0",
        f"INSERT INTO queue SELECT {_ID}, q.priority, q.first, q.second, q.fingerprint "
        "FROM queue_whole q JOIN host h ON h.id = q.host_id",
    ),
    *_cut(
        "later",
        "shard, due, host_id, fingerprint",
        _SHARD_LIMITS,
        "autovacuum_vacuum_scale_factor = 0.02",
        f"INSERT INTO later SELECT l.shard, l.due, {_ID}, l.fingerprint "
        "FROM later_whole l JOIN host h ON h.id = l.host_id",
    ),
    f"UPDATE robots SET host_id = {_ID} FROM host h WHERE h.id = host_id",
    "DELETE FROM leased",  # names hosts by their former ids; visits that a killed worker had begun are simply repeated
    f"UPDATE host SET id = (shard::bigint << {HOST_BITS}) + id",
    *_cut(
        "page",
        "fingerprint",
        _FINGERPRINT_LIMITS,
        "fillfactor = 80",
        "INSERT INTO page SELECT * FROM page_whole",
        (
            "CREATE INDEX page_host ON page(host, fingerprint)",
            f"CREATE INDEX page_behind ON page(fetched_at, fingerprint) WHERE {BEHIND}",
            "CREATE INDEX page_owed ON page(owed, fetched_at, fingerprint) WHERE owed > 0",
        ),
    ),
    *_cut(
        "visit",
        "fingerprint, fetched_at",
        _FINGERPRINT_LIMITS,
        "fillfactor = 100",
        "INSERT INTO visit SELECT * FROM visit_whole",
    ),
    "SET LOCAL enable_seqscan = off",
    "SET LOCAL enable_hashjoin = off",
)

# An update is cheap (HOT: no index is touched) if no column of an index changes, and the condition of a partial index
# counts as one. The length of a host's queue changes with every page; whether it has one, seldom.
IS_QUEUED = "ALTER TABLE host ADD COLUMN is_queued boolean GENERATED ALWAYS AS (queued > 0) STORED"
# Links that are found again are compared with what the index of URLs has, without the table. That needs parts which are
# vacuumed often enough while they grow: by default after a fifth is new.
_LARGE_FRONTIERS = (
    IS_QUEUED,
    "DROP INDEX host_ready",
    "CREATE INDEX host_ready ON host(shard, ready_at) WHERE is_queued",
    "ALTER TABLE url DROP CONSTRAINT url_pkey",
    "ALTER TABLE url ADD PRIMARY KEY(host_id, fingerprint) INCLUDE (priority, depth)",
    *(f"ALTER TABLE url_{number:02d} SET (autovacuum_vacuum_insert_scale_factor = 0.05)" for number in range(PARTS)),
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _SHARDS + _FRONTIER + _CATALOG + _OUTBOX + _BUS + _TEXT,
    _PHASES,
    _CLUSTER,
    _PARTITIONS,
    _LARGE_FRONTIERS,
)

# Migrations, by number, that leave everything which a worker of the version before reads or writes: new tables, indexes
# and columns that may be empty. They run while such workers finish. What they make superfluous is removed a version
# later, when nobody uses it any more.
ADDITIVE: frozenset[int] = frozenset()
