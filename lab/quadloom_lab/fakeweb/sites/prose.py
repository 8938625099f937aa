"""Prose: sentences that sound like their subject and language, drawn from pools that are built once.

A page of 40 KB has some hundred sentences. Composing a hundred from templates costs 0.33 ms, choosing them from a
pool of ready ones 0.014 ms, and rendering is what bounds the server when its cache is cold.
"""

from __future__ import annotations

from functools import lru_cache
from random import Random

from quadloom_lab.fakeweb.sites import words
from quadloom_lab.fakeweb.sites.chance import stream

POOL = 320  # sentences per language and subject

_GENERAL = (
    "Visitors to {city} often ask about the {adjective} {noun}.",
    "The {noun} was rebuilt twice before it became what it is today.",
    "Most people come for the {noun} and stay for the {noun2}.",
    "In {year} the town council of {city} decided to keep the {noun} open.",
    "There is a map of the {adjective} {noun} near the entrance.",
    "Nobody in {city} remembers when the {adjective} {noun} was last repaired.",
    "Between {city} and {city2} the journey takes {count} minutes by train.",
)
_SUBJECT = {
    "books": (
        "The chapter about the {noun} is the best of the {count} in this volume.",
        "Readers in {city} compare it with an earlier {genre} by the same hand.",
        "The {adjective} cover shows a {noun} above the roofs of {city}.",
        "A second edition with {count} more pages appeared in {year}.",
        "Its narrator leaves {city} for {city2} and finds a {adjective} {noun}.",
        "Critics praised the {genre} passages and the patient tone.",
    ),
    "events": (
        "Doors open {count} minutes before the concert begins.",
        "The stage stands beside the {noun}, five minutes from {city} station.",
        "Tickets bought in {city2} are valid for the evening programme too.",
        "After the reading there is music in the {adjective} hall.",
        "The festival has been held every year since {year}.",
    ),
    "recipes": (
        "Let the dough rest for {count} minutes before shaping it.",
        "In {city} this dish is served with pickled plums and brown bread.",
        "Stir slowly until the sauce turns {adjective} and thick.",
        "A cook from {city2} adds smoked paprika and a spoon of honey.",
        "Leftovers keep for two days in a cool place.",
        "Serve warm, with parsley and a slice of lemon.",
    ),
    "people": (
        "The family moved from {city} to {city2} in {year}.",
        "Early work was shown at the {noun} in {city}.",
        "Friends remember a {adjective} sense of humour and {count} notebooks.",
        "A residency in {city} led to the project on the {noun}.",
    ),
    "museums": (
        "The collection holds {count} objects, among them a {adjective} {noun}.",
        "Guided tours start at the {noun} every hour.",
        "The east wing was built in {year} by masons from {city}.",
        "Children may wind the mechanism of the {adjective} {noun}.",
        "The museum lends works to partners in {city} and {city2}.",
    ),
    "products": (
        "The handle is made of ash from a workshop in {city}.",
        "Delivery to {city} takes {count} hours on working days.",
        "Spare parts have been kept in stock since {year}.",
        "Customers like the {adjective} finish and the quiet lid.",
        "It weighs {count} grams and fits beside a {noun}.",
    ),
    "datasets": (
        "Readings are taken every {count} minutes at the {noun} in {city}.",
        "Missing values before {year} were filled from the station at {city2}.",
        "The table has {count} columns and one row per observation.",
        "Sensors were calibrated against the {adjective} reference in {city}.",
    ),
    "news": (
        "The mayor of {city} said that the {noun} would stay open until {year}.",
        "About {count} people gathered at the {adjective} {noun} on Sunday.",
        "A spokesperson in {city2} declined to comment on the {noun}.",
        "The plan costs less than the {adjective} bridge of {year}.",
        "Residents had asked for a decision for {count} months.",
    ),
}
_OTHER = {
    "de": (
        "In {city} erzählt man sich noch heute von der alten Brücke über den Fluß.",
        "Die Führung dauert {count} Minuten und beginnt täglich um zehn Uhr.",
        "Seit {year} gehört das Gebäude der Stadt {city}.",
        "Wer aus {city2} anreist, nimmt am besten den frühen Zug.",
        "Der Eintritt ist frei, für Gruppen gelten größere Räume.",
        "Vor {count} Jahren wurde hier zum ersten Mal öffentlich gelesen.",
    ),
    "fr": (
        "À {city}, on raconte encore l'histoire du vieux phare près du marché.",
        "La visite dure {count} minutes et commence devant la fenêtre bleue.",
        "Depuis {year}, l'été rassemble des élèves venus de {city2}.",
        "Les œuvres prêtées par {city} ont été restaurées très tôt.",
        "Le déjeuner se prend à l'ombre, où l'on goûte la crème brûlée.",
    ),
    "ru": (
        "В городе {city} до сих пор вспоминают старый мост через реку.",
        "Экскурсия длится {count} минут и начинается у главного входа.",
        "С {year} года здание принадлежит городу {city2}.",
        "Читатели особенно любят последнюю главу этой книги.",
        "Вечером на площади играет небольшой оркестр.",
    ),
    "ja": (
        "{city}の古い橋は今でも多くの人に親しまれています。",
        "見学は約{count}分で、毎日十時に始まります。",
        "{year}年からこの建物は市が管理しています。",
        "{city2}から来る人は朝の電車が便利です。",
        "夕方になると広場で小さな音楽会が開かれます。",
    ),
}


def filled(template: str, rng: Random) -> str:
    """A template with its blanks filled by chance."""
    return template.format(
        city=rng.choice(words.CITIES),
        city2=rng.choice(words.CITIES),
        noun=rng.choice(words.NOUNS).lower(),
        noun2=rng.choice(words.NOUNS).lower(),
        adjective=rng.choice(words.ADJECTIVES).lower(),
        genre=rng.choice(words.GENRES),
        year=rng.randrange(1904, 2024),
        count=rng.randrange(12, 96),
    )


@lru_cache(maxsize=64)
def pool(seed: int, language: str, subject: str) -> tuple[str, ...]:
    """The sentences that pages of this subject in this language are made of."""
    rng = stream(seed, "pool", language, subject)
    templates = _OTHER[language] if language != "en" else _SUBJECT[subject] * 2 + _GENERAL
    return tuple(filled(rng.choice(templates), rng) for _ in range(POOL))


_SENTENCE_BYTES = {"en": 58, "de": 61, "fr": 66, "ru": 91, "ja": 61}  # UTF-8, mean over the pools of seed 1


def paragraphs(seed: int, language: str, subject: str, size: int, rng: Random) -> list[str]:
    """About `size` bytes of prose in paragraphs of five sentences."""
    sentences = pool(seed, language, subject)
    chosen = rng.choices(sentences, k=max(2, size // _SENTENCE_BYTES[language]))
    glue = "" if language == "ja" else " "
    return [glue.join(chosen[start : start + 5]) for start in range(0, len(chosen), 5)]


def description(language: str, subject: str, name: str) -> str:
    """One line about a thing, for meta elements."""
    pattern = _DESCRIPTIONS[language]
    return pattern.format(name=name, subject=subject)


_DESCRIPTIONS = {
    "en": "{name}: notes, facts and further reading from our {subject} pages.",
    "de": "{name}: Angaben, Hintergründe und Verweise für Leserinnen und Leser.",
    "fr": "{name} : renseignements, repères et lectures à découvrir.",
    "ru": "{name}: сведения, заметки и ссылки для читателей.",
    "ja": "{name}についての情報と読み物をまとめました。",
}
