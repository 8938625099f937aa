"""A small web that never changes, so that a warehouse of an earlier version can be crawled on years later.

It imports nothing of Quadloom. Its pages are those that `fixtures/warehouse-0.1.tar.xz` was made from, byte for byte.
Do not change one, or the fixture is crawled on in another web than its own. URLs have names and one port. The address
behind the names is chosen when the web is served, so that several tests can serve it at a time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

PORT = 18473  # below the range of outgoing connections; it is part of every URL of the fixture
BOOKS, DATA, NEWS, CLOSED = (f"http://{name}.example:{PORT}" for name in ("books", "data", "news", "closed"))
HOOKS = f"http://hooks.example:{PORT}/notices"
REFUSED = f"http://books.example:{PORT + 1}/"  # nobody listens there
COUNT = 42  # books
PEOPLE = 12
STORIES = 18
CHANGED_ON_DAY_1, GONE_ON_DAY_1, CHANGED_ON_DAY_2 = (2, 7), 12, 8

_WORDS = (
    "harbour", "lantern", "meadow", "granite", "violin", "orchard", "glacier", "compass", "saffron", "thunder",
    "marble", "willow", "copper", "island", "almanac", "feather", "cathedral", "pepper", "horizon", "velvet",
)  # fmt: skip
_NAMES = (
    "Ada", "Bruno", "Clara", "Dmitri", "Élodie", "Farid", "Grace", "Hiroshi", "Ines", "Jakob", "Karin", "Luca",
)  # fmt: skip


class Page(NamedTuple):
    body: bytes
    type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def seeds() -> list[str]:
    return [f"{BOOKS}/", f"{DATA}/"]


def answer(host: str, target: str, day: int) -> Page:
    """What a site answers on a day of this web."""
    site = {"books": _books, "data": _data, "news": _news, "closed": _closed}.get(host.partition(".")[0])
    page = site(target, day) if site and host.endswith(f".example:{PORT}") else None
    return page or _error(404, "There is no such page here.")


@contextmanager
def serving(day: int = 0) -> Iterator[Served]:
    """The web on a loopback address of its own. Raises `OSError` if the port is taken on all of them."""
    served = Served(day)
    thread = threading.Thread(target=served.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.server.shutdown()
        served.server.server_close()
        thread.join()


class Served:
    """`day` may be changed meanwhile; `requests` are (host, target, status) in the order of arrival."""

    def __init__(self, day: int) -> None:
        self.day = day
        self.requests: list[tuple[str, str, int]] = []
        self.posted: list[bytes] = []
        self.server = self._bind()
        self.address = str(self.server.server_address[0])

    def _bind(self) -> ThreadingHTTPServer:
        refused = OSError("no address tried")
        for last in range(1, 64):
            try:
                return _Server((f"127.77.0.{last}", PORT), _handler(self))
            except OSError as error:
                refused = error
        raise refused


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)  # without asking DNS for the name of the address
        self.server_name, self.server_port = "frozen.example", PORT

    def handle_error(self, *_: object) -> None:
        """A client may close its connection."""


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = self.headers.get("Host", "")
            page = answer(host, self.path, served.day)
            served.requests.append((host, self.path, page.status))
            self._send(page)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            served.posted.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            self._send(Page(b"", status=204))

        def _send(self, page: Page) -> None:
            self.send_response(page.status)
            for name, value in page.headers:
                self.send_header(name, value)
            self.send_header("Content-Type", page.type)
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(page.body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


def _books(target: str, day: int) -> Page | None:
    """HTML in all its syntaxes, with a sitemap, a search form, redirects and failures of each kind."""
    path, _, rest = target.strip("/").partition("/")
    match path:
        case "":
            lists = "".join(f"<li><a href='/list/{n}'>Shelf {n}</a>" for n in range(4))
            form = (
                "<form action='/search' method=get role=search><input type=search name=q><button>Search</button></form>"
            )
            others = f"<a href='{NEWS}/'>News</a> <a href='{DATA}/'>Data</a> <a href='{CLOSED}/'>Closed</a>"
            return _html("The harbour bookshop", f"{form}<ul>{lists}</ul>{others} <a href='/odd'>Odd</a>")
        case "robots.txt":
            return Page(f"User-agent: *\nDisallow: /private/\nSitemap: {BOOKS}/sitemap.xml\n".encode(), "text/plain")
        case "sitemap.xml":
            urls = "".join(f"<url><loc>{BOOKS}/book/{n}</loc></url>" for n in range(0, COUNT, 5))
            space = "http://www.sitemaps.org/schemas/sitemap/0.9"
            return Page(f'<?xml version="1.0"?><urlset xmlns="{space}">{urls}</urlset>'.encode(), "application/xml")
        case "list" if rest.isdecimal() and int(rest) < 4:
            shelf = range(int(rest), COUNT, 4)
            return _html(f"Shelf {rest}", "".join(f"<p><a href='/book/{n}'>{_title(n)}</a>" for n in shelf))
        case "book" if rest.isdecimal() and int(rest) < COUNT:
            return _book(int(rest), day)
        case "odd":
            links = "".join(
                f"<a href='{link}'>{link}</a> "
                for link in ("/moved", "/loop", "/missing", "/gone", "/broken", "/busy", "/private/1", "/picture.png")
            )
            return _html(
                "Odd pages", f"{links}<a href='/latin'>latin</a> <a href='/draft/1'>draft</a> <a href='{REFUSED}'>x</a>"
            )
        case "moved":
            return Page(b"", status=301, headers=(("Location", "/book/1"),))
        case "loop":
            return Page(b"", status=302, headers=(("Location", "/loop"),))
        case "gone":
            return _error(410, "Gone.")
        case "broken":
            return _error(500, "Something broke.")
        case "busy":
            return Page(b"busy", "text/plain", 503, (("Retry-After", "1"),))
        case "picture.png":
            return Page(b"\x89PNG\r\n\x1a\n" + bytes(64), "image/png")
        case "latin":
            return Page("<title>Café</title><p>Un café à la gare".encode("latin-1"), "text/html; charset=iso-8859-1")
        case "draft" | "private":
            return _html(f"Of the {path}", "<p>not for everybody")
        case _ if path.startswith("search?q="):
            word = path.removeprefix("search?q=").partition("&")[0].lower()
            found = [n for n in range(COUNT) if word in _title(n).lower()]
            hits = "".join(
                f"<li class=result><h3><a href='/book/{n}'>{_title(n)}</a></h3><p>{_text(n)}</li>" for n in found
            )
            return _html(f"Search: {word}", f"<p>{len(found)} results</p><ol class=results>{hits}</ol>")
    return None


def _book(n: int, day: int) -> Page:
    if n == GONE_ON_DAY_1 and day >= 1:
        return _error(410, "This book is sold.")
    price = 10 + n + (5 if n in CHANGED_ON_DAY_1 and day >= 1 else 0) + (7 if n == CHANGED_ON_DAY_2 and day >= 2 else 0)
    syntax = _SYNTAXES[n % len(_SYNTAXES)]
    head, body = syntax(n, price)
    links = "".join(f"<a href='/book/{(n + step) % COUNT}'>{_title((n + step) % COUNT)}</a> " for step in (1, 3, 11))
    return _html(_title(n), f"{body}<p>{_text(n)}</p>{links}<a href='{DATA}/person/{n % PEOPLE}'>author</a>", head)


def _rdfa(n: int, price: int) -> tuple[str, str]:
    offer = f"<span property=offers typeof=Offer><b property=price>{price}</b> <i property=priceCurrency>EUR</i></span>"
    author = f"<a property=author href='{DATA}/person/{n % PEOPLE}#me'>{_person(n)}</a>"
    book = "vocab='http://schema.org/' typeof=Book resource='#it'"
    return "", f"<div {book}><h1 property=name>{_title(n)}</h1>{author}{offer}</div>"


def _microdata(n: int, price: int) -> tuple[str, str]:
    offer = (
        f"<div itemprop=offers itemscope itemtype='http://schema.org/Offer'><span itemprop=price>{price}</span></div>"
    )
    item = f"itemscope itemid='{BOOKS}/book/{n}#it' itemtype='http://schema.org/Book'"
    return "", f"<div {item}><h1 itemprop=name>{_title(n)}</h1><span itemprop=author>{_person(n)}</span>{offer}</div>"


def _jsonld(n: int, price: int) -> tuple[str, str]:
    offer = {"@type": "Offer", "price": price, "priceCurrency": "EUR"}
    author = {"@id": f"{DATA}/person/{n % PEOPLE}#me", "name": _person(n)}
    book = {
        "@context": "http://schema.org/",
        "@type": "Book",
        "@id": "#it",
        "name": _title(n),
        "author": author,
        "offers": offer,
    }
    return f"<script type='application/ld+json'>{json.dumps(book)}</script>", f"<h1>{_title(n)}</h1>"


def _microformats(n: int, price: int) -> tuple[str, str]:
    author = f"<a class='p-author h-card' href='{DATA}/person/{n % PEOPLE}'>{_person(n)}</a>"
    details = f"<span class=p-price>{price}</span>{author}"
    return "", f"<article class=h-product><h1 class=p-name>{_title(n)}</h1>{details}</article>"


def _opengraph(n: int, price: int) -> tuple[str, str]:
    head = (
        f"<meta property='og:title' content='{_title(n)}'><meta property='og:type' content='book'>"
        f"<meta property='og:url' content='{BOOKS}/book/{n}'><link rel='schema.DC' href='http://purl.org/dc/elements/1.1/'>"
        f"<meta name='DC.creator' content='{_person(n)}'>"
    )
    return head, f"<h1>{_title(n)}</h1><p>{price} EUR"


def _plain(n: int, price: int) -> tuple[str, str]:
    return f"<meta name=description content='{_title(n)}, second hand'>", f"<h1>{_title(n)}</h1><p>{price} EUR"


_SYNTAXES: tuple[Callable[[int, int], tuple[str, str]], ...] = (
    _rdfa,
    _microdata,
    _jsonld,
    _microformats,
    _opengraph,
    _plain,
)


def _data(target: str, day: int) -> Page | None:
    """RDF in every serialisation, XML without one, plain text; names of people redirect to their documents."""
    path, _, rest = target.strip("/").partition("/")
    foaf, me = "http://xmlns.com/foaf/0.1/", f"{DATA}/person"
    match path:
        case "":
            people = "".join(f"<a href='/person/{n}'>{_person(n)}</a> " for n in range(PEOPLE))
            files = "".join(
                f"<a href='/{name}'>{name}</a> " for name in ("all.trig", "all.nq", "shops.xml", "notes.txt")
            )
            return _html("Open data", people + files)
        case "person" if rest.isdecimal() and int(rest) < PEOPLE:
            ending = ("ttl", "rdf", "nt", "jsonld")[int(rest) % 4]
            return Page(b"", status=303, headers=(("Location", f"/doc/{rest}.{ending}"),))
        case "doc":
            number, _, ending = rest.partition(".")
            if not number.isdecimal() or int(number) >= PEOPLE:
                return None
            n, name, other = int(number), _person(int(number)), (int(number) + 5) % PEOPLE
            if ending == "ttl":
                text = (
                    f'@prefix foaf: <{foaf}> .\n<{me}/{n}#me> a foaf:Person ; foaf:name "{name}"@en ; '
                    f'foaf:knows <{me}/{other}#me>, [ a foaf:Person ; foaf:nick "{_WORDS[n]}" ] .\n'
                )
                return Page(text.encode(), "text/turtle")
            if ending == "rdf":
                space = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
                text = (
                    f'<rdf:RDF xmlns:rdf="{space}" xmlns:foaf="{foaf}"><foaf:Person rdf:about="{me}/{n}#me"><foaf:name>'
                    f'{name}</foaf:name><foaf:knows rdf:resource="{me}/{other}#me"/></foaf:Person></rdf:RDF>'
                )
                return Page(text.encode(), "application/rdf+xml")
            if ending == "nt":
                text = f'<{me}/{n}#me> <{foaf}name> "{name}" .\n<{me}/{n}#me> <{foaf}knows> <{me}/{other}#me> .\n'
                return Page(text.encode(), "application/n-triples")
            if ending == "jsonld":
                document = {"@context": {"@vocab": foaf}, "@id": f"{me}/{n}#me", "@type": "Person", "name": name}
                return Page(json.dumps(document).encode(), "application/ld+json")
        case "all.trig":
            text = f"@prefix foaf: <{foaf}> .\n<{DATA}/g> {{ <{me}/0#me> foaf:age 40 . }}\n<{me}/1#me> foaf:age 41 .\n"
            return Page(text.encode(), "application/trig")
        case "all.nq":
            return Page(f'<{me}/2#me> <{foaf}age> "42" <{DATA}/g> .\nnot a statement\n'.encode(), "application/n-quads")
        case "shops.xml":
            text = '<shops xmlns="urn:example:shops"><shop id="1"><name>Harbour</name><town>Riga</town></shop></shops>'
            return Page(text.encode(), "application/xml")
        case "notes.txt":
            return Page(b"Notes on the harbour, in plain text.\n", "text/plain")
    return None


def _news(target: str, day: int) -> Page | None:
    """Stories with validators, and their feeds. It comes into the scope only by an edit of the rules."""
    path, _, rest = target.strip("/").partition("/")
    match path:
        case "":
            kinds = {"rss.xml": "rss+xml", "atom.xml": "atom+xml", "feed.json": "feed+json"}
            feeds = "".join(
                f"<link rel=alternate type='application/{kind}' href='/{name}'>" for name, kind in kinds.items()
            )
            return _html("News", "".join(f"<p><a href='/story/{n}'>{_title(n)}</a>" for n in range(STORIES)), feeds)
        case "story" if rest.isdecimal() and int(rest) < STORIES:
            n = int(rest)
            more = f"<p>More on day {day}." if day >= 1 and n == 2 else ""
            page = _html(
                f"Story: {_title(n)}",
                f"<div class=hentry><h1 class=entry-title>{_title(n)}</h1><p>{_text(n)}{more}</div>",
            )
            return page._replace(headers=(("ETag", f'"{n}-{bool(more):d}"'),))
        case "rss.xml":
            items = "".join(f"<item><title>{_title(n)}</title><link>{NEWS}/story/{n}</link></item>" for n in range(6))
            text = f"<rss version='2.0'><channel><title>News</title><link>{NEWS}/</link>{items}</channel></rss>"
            return Page(text.encode(), "application/rss+xml")
        case "atom.xml":
            entries = "".join(
                f"<entry><title>{_title(n)}</title><id>{NEWS}/story/{n}</id><link href='{NEWS}/story/{n}'/>"
                "<updated>2024-01-01T00:00:00Z</updated></entry>"
                for n in range(6, 12)
            )
            text = f"<feed xmlns='http://www.w3.org/2005/Atom'><title>News</title><id>{NEWS}/</id>{entries}</feed>"
            return Page(text.encode(), "application/atom+xml")
        case "feed.json":
            listed = [
                {"id": f"{NEWS}/story/{n}", "url": f"{NEWS}/story/{n}", "title": _title(n)} for n in range(12, STORIES)
            ]
            feed = {"version": "https://jsonfeed.org/version/1.1", "title": "News", "items": listed}
            return Page(json.dumps(feed).encode(), "application/feed+json")
    return None


def _closed(target: str, day: int) -> Page | None:
    """A site that wants no crawlers."""
    return (
        Page(b"User-agent: *\nDisallow: /\n", "text/plain") if target == "/robots.txt" else _html("Closed", "<p>closed")
    )


def _title(n: int) -> str:
    return f"The {_WORDS[n % len(_WORDS)]} and the {_WORDS[(n * 7 + 3) % len(_WORDS)]}"


def _person(n: int) -> str:
    return f"{_NAMES[n % PEOPLE]} {_WORDS[(n % PEOPLE) * 3 % len(_WORDS)].capitalize()}"


def _text(n: int) -> str:
    return " ".join(_WORDS[(n * 5 + k * k) % len(_WORDS)] for k in range(40)) + f" number{n}."


def _html(title: str, body: str, head: str = "") -> Page:
    page = f"<!doctype html><html lang=en><head><title>{title}</title>{head}</head><body>{body}</body></html>"
    return Page(page.encode())


def _error(status: int, text: str) -> Page:
    return _html(str(status), f"<p>{text}")._replace(status=status)
