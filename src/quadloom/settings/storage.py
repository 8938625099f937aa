"""Settings of where data is stored, and of who may ask for it."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from quadloom.settings.fields import ABOVE_0, FROM_0, FROM_1, PORT, Bytes, Seconds, doc


class StoreSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Storage backends, by URL; the defaults are files in the warehouse."""

    frontier: Annotated[str, doc("sqlite:, or postgresql://user@host:port/database for many machines")] = "sqlite:"
    catalog: Annotated[str, doc("sqlite:, or postgresql: for the frontier's database")] = "sqlite:"
    archive: Annotated[str, doc("warc:, warc:///directory that many machines share, or s3://bucket/prefix")] = "warc:"
    quads: Annotated[
        str,
        doc(
            "oxigraph:, oxigraph:///folder on another disk, or sparql+http(s)://host:port/path of a server; "
            "several servers, separated by blanks, have a part of the sites each"
        ),
    ] = "oxigraph:"
    text: Annotated[
        str,
        doc(
            "tantivy:, tantivy:///folder on another disk, tantivy+shards:///directory that many machines share, "
            "or postgresql: for the frontier's database"
        ),
    ] = "tantivy:"
    links: Annotated[str, doc("folder of the links between pages, on another disk; empty = in the warehouse")] = ""
    lake: Annotated[
        str,
        doc("Parquet files of `quadloom lake`: a directory or s3://bucket/prefix; empty = `lake` in the warehouse"),
    ] = ""
    directories: Annotated[list[str], doc("more directories (disks) for archive files, used in turn")] = []
    spool: Annotated[
        str,
        doc("directory for transformed pages that another process indexes; many machines share one; empty = `spool`"),
    ] = ""
    archive_file_bytes: Annotated[
        Bytes, doc("size at which an archive file is closed and a new one begun, bytes"), FROM_1
    ] = 1024 * 1024 * 1024
    archive_upload_seconds: Annotated[
        Seconds, doc("s3: most seconds until an archive file is closed and uploaded"), ABOVE_0
    ] = 900.0
    archive_endpoint: Annotated[str, doc("s3: address of a server other than Amazon's, such as MinIO")] = ""
    archive_region: Annotated[str, doc("s3: region of the bucket; empty = from the AWS environment")] = ""
    archive_writer: Annotated[
        str, doc("s3: folder of this writer's files in the bucket; empty = a random one, chosen once")
    ] = ""
    timestamp_server: Annotated[
        str, doc("address of an RFC 3161 server that dates the folders of `quadloom cite --bundle`; empty = none")
    ] = ""
    quads_query: Annotated[str, doc("SPARQL server: address for queries, relative to stores.quads or a whole URL")] = (
        "query"
    )
    quads_update: Annotated[str, doc("SPARQL server: address for updates")] = "update"
    quads_graph_store: Annotated[
        str, doc("SPARQL server: address of the Graph Store Protocol for reading graphs; empty = read by query")
    ] = ""
    quads_union: Annotated[
        str, doc("SPARQL server: parameter that makes the union of all graphs the default graph; empty = it always is")
    ] = "union-default-graph=true"
    quads_timeout: Annotated[
        str,
        doc("SPARQL server: parameter that ends a user's query there, such as timeout={seconds}s; empty = it has none"),
    ] = ""
    quads_user: Annotated[str, doc("SPARQL server: user name; the password comes from QUADLOOM_QUADS_PASSWORD")] = ""
    quads_seconds: Annotated[
        Seconds, doc("SPARQL server: longest wait for data before it counts as unreachable, seconds"), ABOVE_0
    ] = 60.0

    @property
    def is_shared(self) -> bool:
        """Whether several machines may share the warehouse: its frontier is on a server."""
        return self.frontier.startswith("postgresql:")


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Many machines on one PostgreSQL database."""

    lease: Annotated[
        Seconds, doc("seconds after a worker's last heartbeat until others take over its shards"), ABOVE_0
    ] = 20.0
    heartbeat: Annotated[Seconds, doc("seconds between two heartbeats of a worker"), ABOVE_0] = 5.0
    links: Annotated[
        str,
        doc("directory that all workers share: importance from the links of all; empty = of the links a worker saw"),
    ] = ""


class WebSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The web site and API of `quadloom serve`."""

    host: Annotated[str, doc("address to listen on; anything but loopback needs a token")] = "127.0.0.1"
    port: Annotated[int, doc("port to listen on"), PORT] = 7272
    public_url: Annotated[str, doc("address at which others reach this site, such as https://data.example/")] = ""
    token_file: Annotated[str, doc("file with the token that control requests must carry")] = ""
    hosts: Annotated[list[str], doc("more Host names to answer to")] = []
    cors: Annotated[
        Literal["auto", "on", "off"],
        doc("whether other sites' pages may read open addresses such as /sparql; auto: unless `host` is loopback"),
    ] = "auto"
    rate: Annotated[float, doc("requests per second and client, 0 = no limit"), FROM_0] = 50.0
    concurrency: Annotated[int, doc("SPARQL queries per client at the same time, 0 = no limit"), FROM_0] = 2
    connections: Annotated[
        int, doc("open connections; up to 50 of them are left for health checks if all are in use"), Meta(ge=10)
    ] = 1000
    client_connections: Annotated[
        int, doc("open connections per client, 0 = no limit; loopback has none, since a proxy may be there"), FROM_0
    ] = 200
    head_seconds: Annotated[Seconds, doc("time to send the head of a request, seconds"), ABOVE_0] = 10.0
    body_seconds: Annotated[Seconds, doc("time to send the body of a request, seconds"), ABOVE_0] = 60.0
    send_seconds: Annotated[
        Seconds, doc("a client that reads less than 16 KiB of its response in this time is dropped, seconds"), ABOVE_0
    ] = 30.0
