"""The things that pages are about: books, events, recipes, people … and the facts of each.

A thing is a number within its subject. Its facts depend on the seed and that number only, so two sites that describe
it agree; but every twelfth site description has one fact wrong, as on the real web.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from quadloom_lab.fakeweb.sites import words
from quadloom_lab.fakeweb.sites.chance import number, pick, share
from quadloom_lab.fakeweb.sites.prose import description
from quadloom_lab.fakeweb.sites.spec import Language, Subject
from quadloom_lab.fakeweb.sites.things import SCHEMA, DateValue, Fact, Iri, Thing, Value

ERROR_SHARE = 1 / 12  # descriptions with one fact that contradicts the other sites'

TYPES: dict[Subject, str] = {
    "books": "Book", "events": "Event", "recipes": "Recipe", "people": "Person", "museums": "Museum",
    "products": "Product", "datasets": "Dataset", "news": "NewsArticle",
}  # fmt: skip


class ThingView:
    """How one host describes one thing: the names it uses, the version, and whether a fact is wrong."""

    def __init__(self, iri: str, same_as: tuple[str, ...], language: Language, host: int, version: int) -> None:
        self.iri = iri
        self.same_as = same_as
        self.language = language
        self.host = host
        self.version = version


class Catalogue:
    """All things of one web. The first `registered` people have a name in the registry, `registry` + number."""

    def __init__(self, seed: int, pools: Mapping[Subject, int], registered: int, registry: str) -> None:
        self._seed = seed
        self._pools = pools
        self._registered = registered
        self._registry = registry
        self.name = lru_cache(maxsize=65536)(self._name)
        self.slug = lru_cache(maxsize=65536)(self._slug)

    def pool(self, subject: Subject) -> int:
        return self._pools[subject]

    def describe(self, subject: Subject, index: int, view: ThingView) -> Thing:
        """The thing as the view's host describes it."""
        facts: list[Fact] = [Fact("name", self.name(subject, index))]
        facts += _BUILDERS[subject](self, index, view)
        facts.append(Fact("description", description(view.language, subject, self.name(subject, index))))
        facts += [Fact("sameAs", Iri(name)) for name in view.same_as]
        return Thing(TYPES[subject], view.iri, tuple(facts))

    def person(self, *key: object) -> Thing:
        """A person mentioned by a page, by name and registered IRI."""
        index = number(self._seed, "person", *key) % self._registered
        name = self.name("people", index)
        return Thing("Person", f"{self._registry}{index}", (Fact("name", name),))

    def city(self, subject: Subject, index: int) -> str:
        return pick(words.CITIES, self._seed, "city", subject, index)

    def _name(self, subject: Subject, index: int) -> str:
        """Mixed-radix numbers over word lists: no two names are the same within the product of the lists' lengths."""
        position = index * 7919 + number(self._seed, "names", subject) % 9973
        adjective, noun, city = _digits(position, words.ADJECTIVES, words.NOUNS, words.CITIES)
        match subject:
            case "books":
                return f"The {adjective} {noun}" if index % 3 else f"The {adjective} {noun} of {city}"
            case "events":
                gathering = words.GATHERINGS[position % len(words.GATHERINGS)]
                return f"{gathering} at the {noun}, {self.city('events', index)}"
            case "recipes":
                dish = words.DISHES[position % len(words.DISHES)]
                return f"{dish} from {city}" if index % 2 else f"{adjective} {dish}"
            case "people":
                given, family = _digits(position, words.GIVEN, words.FAMILY)
                initial = f" {chr(65 + index // 896 % 26)}." if index >= 896 else ""
                return f"{given}{initial} {family}"
            case "museums":
                return f"{words.COLLECTIONS[position % len(words.COLLECTIONS)]} {self.city('museums', index)}"
            case "products":
                good, brand = _digits(position, words.GOODS, words.BRANDS)
                return f"{brand} {adjective} {good}"
            case "datasets":
                topic = words.MEASURED[position % len(words.MEASURED)]
                return f"{topic} Observations {self.city('datasets', index)} {1950 + index % 70}"
            case "news":
                pattern = words.HEADLINES[position % len(words.HEADLINES)]
                return pattern.format(
                    city=city, noun=noun.lower(), nouns=noun.lower() + "s", adjective=adjective.lower()
                ).capitalize()

    def _slug(self, subject: Subject, index: int) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name(subject, index).lower()).strip("-")

    def number(self, index: int, *key: object) -> int:
        return number(self._seed, index, *key)

    def errs(self, subject: Subject, index: int, view: ThingView) -> int:
        """1 if this host describes this thing wrongly, else 0: the error of the facts below."""
        return int(share(self._seed, "error", subject, index, view.host) < ERROR_SHARE)


def _digits(position: int, *lists: tuple[str, ...]) -> list[str]:
    found = []
    for choices in lists:
        position, digit = divmod(position, len(choices))
        found.append(choices[digit])
    return found


def _day(value: int, year: int) -> str:
    return f"{year:04d}-{1 + value % 12:02d}-{1 + value // 12 % 28:02d}"


def _place(name: str, city: str, value: int) -> Thing:
    address = Thing(
        "PostalAddress",
        "",
        (
            Fact("streetAddress", f"{words.STREETS[value % len(words.STREETS)]} {1 + value % 90}"),
            Fact("addressLocality", city),
            Fact("addressCountry", words.COUNTRIES[city]),
        ),
    )
    return Thing("Place", "", (Fact("name", name), Fact("address", address)))


def _offer(price: float) -> Thing:
    facts: tuple[tuple[str, Value], ...] = (
        ("price", f"{price:.2f}"),
        ("priceCurrency", "EUR"),
        ("availability", Iri(SCHEMA + "InStock")),
    )
    return Thing("Offer", "", tuple(Fact(*fact) for fact in facts))


def _rating(value: int, version: int) -> Thing:
    return Thing(
        "AggregateRating",
        "",
        (Fact("ratingValue", f"{3 + value % 20 / 10:.1f}"), Fact("reviewCount", 4 + value % 200 + version)),
    )


def _organization(name: str) -> Thing:
    return Thing("Organization", "", (Fact("name", name),))


def _book(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "book")
    return [
        Fact("author", catalogue.person("book", index)),
        Fact("isbn", f"978-3-{value % 10**5:05d}-{value // 10**5 % 1000:03d}-{value % 10}"),
        Fact("datePublished", DateValue(_day(value, 1960 + value % 64 + catalogue.errs("books", index, view)))),
        Fact("numberOfPages", 90 + value % 600),
        Fact("genre", words.GENRES[value % len(words.GENRES)]),
        Fact("inLanguage", "en"),
        Fact("publisher", _organization(f"{words.BRANDS[value % len(words.BRANDS)]} Press")),
        Fact("aggregateRating", _rating(value, view.version)),
    ]


def _event(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "event")
    day = _day(value, 2026)
    hour = 17 + value % 4 + catalogue.errs("events", index, view)
    city = catalogue.city("events", index)
    noun = words.NOUNS[value % len(words.NOUNS)]
    return [
        Fact("startDate", DateValue(f"{day}T{hour:02d}:30:00+00:00")),
        Fact("endDate", DateValue(f"{day}T{hour + 2:02d}:00:00+00:00")),
        Fact("eventStatus", Iri(SCHEMA + "EventScheduled")),
        Fact("location", _place(f"{noun} Hall", city, value)),
        Fact("performer", catalogue.person("event", index)),
        Fact("organizer", _organization(f"Friends of the {noun}")),
        Fact("offers", _offer(8 + value % 30 + view.version * 0.5)),
    ]


def _recipe(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "recipe")
    chosen = [words.INGREDIENTS[(value + step * 3) % len(words.INGREDIENTS)] for step in range(5)]
    return [
        Fact("author", catalogue.person("recipe", index)),
        *(Fact("recipeIngredient", text) for text in chosen),
        Fact("recipeYield", f"{2 + value % 5} servings"),
        Fact("totalTime", f"PT{20 + value % 70 + 5 * catalogue.errs('recipes', index, view)}M"),
        Fact("recipeInstructions", f"Prepare {chosen[0]} and {chosen[1]}, add the rest, and wait with patience."),
        Fact("aggregateRating", _rating(value, view.version)),
    ]


def _person(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "human")
    given, _, family = catalogue.name("people", index).partition(" ")
    return [
        Fact("givenName", given),
        Fact("familyName", family.rpartition(" ")[2]),
        Fact("jobTitle", words.ROLES[(value + view.version) % len(words.ROLES)]),
        Fact("birthDate", DateValue(_day(value, 1930 + value % 70 + catalogue.errs("people", index, view)))),
        Fact("birthPlace", Thing("Place", "", (Fact("name", catalogue.city("people", index)),))),
        Fact("worksFor", _organization(f"{words.BRANDS[value % len(words.BRANDS)]} Institute")),
    ]


def _museum(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "museum")
    city = catalogue.city("museums", index)
    position = Thing(
        "GeoCoordinates",
        "",
        (Fact("latitude", 36 + value % 2400 / 100), Fact("longitude", -9 + value // 7 % 3400 / 100)),
    )
    return [
        Fact("address", _place("", city, value).facts[1].value),
        Fact("geo", position),
        Fact(
            "telephone", f"+00 {value % 900 + 100} {value // 9 % 9000 + 1000 + catalogue.errs('museums', index, view)}"
        ),
        Fact("openingHours", f"Tu-Su {9 + (value + view.version) % 3:02d}:00-18:00"),
        Fact("employee", catalogue.person("museum", index)),
    ]


def _product(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "product")
    error = catalogue.errs("products", index, view)
    brand = Thing("Brand", "", (Fact("name", catalogue.name("products", index).partition(" ")[0]),))
    return [
        Fact("sku", f"QL-{value % 10**6:06d}"),
        Fact("brand", brand),
        Fact("color", words.COLOURS[(value + error) % len(words.COLOURS)]),
        Fact("offers", _offer(5 + value % 200 + view.version * 0.25)),
        Fact("aggregateRating", _rating(value, view.version)),
    ]


def _dataset(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "dataset")
    start = 1950 + index % 70
    download = Thing("DataDownload", "", (Fact("encodingFormat", "text/csv"), Fact("contentSize", f"{value % 900} kB")))
    return [
        Fact("creator", catalogue.person("dataset", index)),
        Fact("license", Iri("/".join(view.iri.split("/")[:3]) + "/about#licence")),
        Fact("temporalCoverage", f"{start}-01-01/{start + 2 + catalogue.errs('datasets', index, view)}-12-31"),
        Fact("spatialCoverage", Thing("Place", "", (Fact("name", catalogue.city("datasets", index)),))),
        Fact("distribution", download),
        Fact("version", f"1.{view.version}"),
    ]


def _article(catalogue: Catalogue, index: int, view: ThingView) -> list[Fact]:
    value = catalogue.number(index, "article")
    day = _day(value, 2023 + value % 2)
    return [
        Fact("headline", catalogue.name("news", index)),
        Fact("author", catalogue.person("article", index)),
        Fact("datePublished", DateValue(day)),
        Fact("dateModified", DateValue(_day(value + view.version, 2025))),
        Fact(
            "articleSection",
            ("Culture", "Science", "Town", "Travel")[(value + catalogue.errs("news", index, view)) % 4],
        ),
        Fact("publisher", _organization(f"{words.BRANDS[value % len(words.BRANDS)]} Media")),
    ]


_BUILDERS: dict[Subject, Callable[[Catalogue, int, ThingView], list[Fact]]] = {
    "books": _book, "events": _event, "recipes": _recipe, "people": _person, "museums": _museum,
    "products": _product, "datasets": _dataset, "news": _article,
}  # fmt: skip
