"""The words that titles, names and places are made of. All invented; only cities and dishes exist."""

from __future__ import annotations

GIVEN = (
    "Ada", "Amara", "Anselm", "Aoife", "Bela", "Carla", "Dmitri", "Edith", "Emeka", "Farid", "Greta", "Hana", "Ines",
    "Ivo", "Jonas", "Kaito", "Leila", "Lucien", "Mara", "Mei", "Nadia", "Noor", "Oskar", "Pilar", "Quentin", "Rosa",
    "Sanna", "Tomas", "Uma", "Viktor", "Wanda", "Yusuf",
)  # fmt: skip
FAMILY = (
    "Abend", "Achterberg", "Almeida", "Bellweather", "Brandt", "Castellan", "Drummond", "Eskola", "Fairweather",
    "Galindo", "Hartmann", "Ishikawa", "Jansson", "Kessler", "Lindqvist", "Marchetti", "Nakamura", "Okafor", "Petrov",
    "Quill", "Rasmussen", "Sato", "Thornbury", "Ustinov", "Vasquez", "Whitlock", "Yamada", "Zielinski",
)  # fmt: skip
CITIES = (
    "Lisbon", "Vienna", "Kyoto", "Ghent", "Bergen", "Tallinn", "Porto", "Leipzig", "Bologna", "Galway", "Dijon",
    "Sapporo", "Utrecht", "Valencia", "Aarhus", "Kazan", "Graz", "Lyon", "Cork", "Turku",
)  # fmt: skip
COUNTRIES = {
    "Lisbon": "PT", "Vienna": "AT", "Kyoto": "JP", "Ghent": "BE", "Bergen": "NO", "Tallinn": "EE", "Porto": "PT",
    "Leipzig": "DE", "Bologna": "IT", "Galway": "IE", "Dijon": "FR", "Sapporo": "JP", "Utrecht": "NL",
    "Valencia": "ES", "Aarhus": "DK", "Kazan": "RU", "Graz": "AT", "Lyon": "FR", "Cork": "IE", "Turku": "FI",
}  # fmt: skip
ADJECTIVES = (
    "Silent", "Amber", "Hidden", "Winter", "Copper", "Distant", "Gentle", "Hollow", "Ivory", "Luminous", "Northern",
    "Paper", "Quiet", "Restless", "Salt", "Scarlet", "Silver", "Tidal", "Velvet", "Wandering", "Woven", "Glass",
    "Crooked", "Early",
)  # fmt: skip
NOUNS = (
    "Harbour", "Orchard", "Lantern", "Atlas", "Bridge", "Cartographer", "Clockmaker", "Comet", "Estuary", "Garden",
    "Glacier", "Heron", "Island", "Lighthouse", "Loom", "Meadow", "Mirror", "Observatory", "Quarry", "River", "Sparrow",
    "Station", "Threshold", "Weaver", "Window", "Workshop",
)  # fmt: skip
DISHES = (
    "Barley Soup", "Plum Cake", "Mushroom Risotto", "Lentil Stew", "Rye Bread", "Apple Strudel", "Miso Aubergine",
    "Almond Tart", "Potato Gratin", "Fennel Salad", "Chestnut Ravioli", "Fish Chowder", "Buckwheat Pancakes",
    "Pumpkin Curry", "Walnut Pesto", "Poppy Seed Roll",
)  # fmt: skip
INGREDIENTS = (
    "200 g flour", "3 eggs", "1 onion", "2 cloves of garlic", "500 ml vegetable stock", "100 g butter",
    "1 tablespoon honey", "a handful of parsley", "250 g mushrooms", "4 potatoes", "1 lemon", "50 g walnuts",
    "a pinch of salt", "300 g lentils", "2 apples", "1 teaspoon cinnamon",
)  # fmt: skip
GOODS = (
    "Kettle", "Desk Lamp", "Notebook", "Field Jacket", "Bicycle Bell", "Fountain Pen", "Wool Blanket", "Teapot",
    "Rucksack", "Pocket Radio", "Cast Iron Pan", "Wall Clock", "Reading Chair", "Umbrella", "Chess Set", "Binoculars",
)  # fmt: skip
BRANDS = ("Nordlicht", "Hearth & Oak", "Caldera", "Pennywhistle", "Tannenhof", "Kestrel", "Marlowe", "Studio Okapi")
COLOURS = ("red", "blue", "green", "grey", "black", "white")
GENRES = ("mystery", "travel", "poetry", "history", "science fiction", "biography", "essays", "adventure")
GATHERINGS = (
    "Jazz Night", "Chamber Concert", "Poetry Reading", "Science Fair", "Food Festival", "Film Evening",
    "Lantern Parade", "Craft Market", "Choir Workshop", "Book Fair", "Open Observatory", "Harbour Regatta",
)  # fmt: skip
COLLECTIONS = (
    "Museum of Tides", "Textile Museum", "Clock Museum", "Museum of Maps", "Railway Museum", "Glass Museum",
    "Museum of Instruments", "Botanical Museum", "Puppet Museum", "Museum of Letters", "Maritime Museum",
    "Museum of Light",
)  # fmt: skip
MEASURED = (
    "Rainfall", "River Level", "Bird Migration", "Air Quality", "Soil Moisture", "Sea Temperature", "Tree Ring",
    "Traffic Count", "Glacier Extent", "Pollen", "Earthquake", "Library Loan",
)  # fmt: skip
HEADLINES = (
    "{city} opens its new {noun} quarter", "Volunteers restore the old {noun} of {city}",
    "{adjective} {noun} prize goes to {city}", "Why {city} counts its {nouns}",
    "A {adjective} summer for the {nouns} of {city}", "{city} votes on the {noun} question",
    "The {noun} returns to {city}", "Night trains bring {nouns} to {city}",
)  # fmt: skip
ROLES = ("author", "cellist", "chef", "curator", "hydrologist", "illustrator", "journalist", "pianist", "translator")
STREETS = ("Mill Lane", "Harbour Street", "Station Road", "Garden Row", "Tower Square", "Weaver's Yard")
DOMAIN_WORDS = (
    "alpha", "harbour", "linden", "copper", "maple", "northgate", "riverside", "saffron", "tern", "willow", "basalt",
    "cedar", "dune", "ember", "fjord", "granite", "hazel", "indigo", "juniper", "kelp", "larch", "marble", "nimbus",
    "opal", "pebble", "quartz", "rowan", "slate", "thistle", "umber", "violet", "wren", "yarrow", "zephyr",
)  # fmt: skip
DOMAIN_ENDINGS = {
    "books": "books", "events": "events", "recipes": "kitchen", "people": "people", "museums": "museums",
    "products": "goods", "datasets": "data", "news": "news",
}  # fmt: skip
SECTIONS = {
    "en": {
        "books": "books", "events": "events", "recipes": "recipes", "people": "people", "museums": "museums",
        "products": "products", "datasets": "datasets", "news": "news",
    },
    "de": {
        "books": "buecher", "events": "termine", "recipes": "rezepte", "people": "menschen", "museums": "museen",
        "products": "waren", "datasets": "datensaetze", "news": "nachrichten",
    },
    "fr": {
        "books": "livres", "events": "agenda", "recipes": "recettes", "people": "gens", "museums": "mus%C3%A9es",
        "products": "produits", "datasets": "donn%C3%A9es", "news": "actualit%C3%A9s",
    },
    "ru": {
        "books": "%D0%BA%D0%BD%D0%B8%D0%B3%D0%B8", "events": "sobytiya", "recipes": "recepty", "people": "lyudi",
        "museums": "muzei", "products": "tovary", "datasets": "dannye", "news": "novosti",
    },
    "ja": {
        "books": "%E6%9C%AC", "events": "gyoji", "recipes": "reshipi", "people": "jinbutsu", "museums": "bijutsukan",
        "products": "shohin", "datasets": "deta", "news": "nyusu",
    },
}  # fmt: skip
