"""Whether a text is what a property means it to be: a date, a duration, a language, a currency, a number with a check
digit. Each `is_…` is a plain function of the text; `SPECIAL` says which property is held to which of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec

from quadloom.model.finding import Severity

_ZONE = r"(?:Z|[+-]\d\d(?::?\d\d)?)?"
_CLOCK = rf"\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?{_ZONE}"
# ISO 8601 as schema.org means it: a date, perhaps only its year or month or week, perhaps with a time and an offset.
_DATE = re.compile(
    rf"([+-]?\d{{4,6}})(?:-(\d\d)(?:-(\d\d))?(?:T({_CLOCK}))?|-?W\d\d(?:-?\d)?|-(\d{{3}})|)?{_ZONE}\Z", re.ASCII
)
_BASIC_DATE = re.compile(rf"(\d{{4}})(\d\d)(\d\d)(?:T({_CLOCK}))?\Z", re.ASCII)
_MONTH_DAY = re.compile(r"--(\d\d)-(\d\d)\Z", re.ASCII)
_TIME = re.compile(rf"T?({_CLOCK})\Z", re.ASCII)
_DURATION = re.compile(
    r"-?P(?=[\dT])(?:\d+(?:[.,]\d+)?Y)?(?:\d+(?:[.,]\d+)?M)?(?:\d+(?:[.,]\d+)?W)?(?:\d+(?:[.,]\d+)?D)?"
    r"(?:T(?=\d)(?:\d+(?:[.,]\d+)?H)?(?:\d+(?:[.,]\d+)?M)?(?:\d+(?:[.,]\d+)?S)?)?\Z",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_PRICE = re.compile(r"\d+(?:\.\d+)?\Z", re.ASCII)
_LANGUAGE = re.compile(r"([A-Za-z]{2,3}|i|x)(?:-[A-Za-z0-9]{1,8})*\Z")
_MAIL = re.compile(r"(?:mailto:)?[^\s@<>()\[\],;:]+@[^\s@.]+(?:\.[^\s@.]+)+(?:\?\S*)?\Z", re.IGNORECASE)
_URL = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^\s/?#]+\S*\Z|(?:mailto|tel|urn|data|geo|sms|doi|did|isbn):\S+\Z|[/#?.]\S*\Z"
)
_LONGEST = 64  # no date, number or code is longer
_LANGUAGES_TEXT = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el "
    "en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu "
    "iw ja ji jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mo mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk "
    "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo "
    "za zh zu"
)
_LANGUAGES = frozenset(_LANGUAGES_TEXT.split())
_CURRENCIES_TEXT = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD "
    "CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS "
    "GIP GMD GNF GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD "
    "KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR "
    "NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN "
    "SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG "
    "XAU XCD XCG XDR XOF XPD XPF XPT XSU XUA XXX YER ZAR ZMW ZWG ZWL BTC ETH XRP LTC BCH DOGE USDT USDC CNH GGP IMP "
    "JEP"
)
_CURRENCIES = frozenset(_CURRENCIES_TEXT.split())
_COUNTRIES_TEXT = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ "
    "CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO "
    "FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE "
    "JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO "
    "MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW "
    "PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM "
    "TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW"
)
_COUNTRIES = frozenset(_COUNTRIES_TEXT.split())


@lru_cache(maxsize=4096)
def is_date(text: str) -> bool:
    """A date or a date with time, by ISO 8601."""
    if len(text) > _LONGEST:
        return False
    match = _DATE.match(text) or _BASIC_DATE.match(text)
    if match is None:
        month_day = _MONTH_DAY.match(text)
        return month_day is not None and _is_day(4, int(month_day[1]), int(month_day[2]))
    year, month, day, clock = match.group(1), match.group(2), match.group(3), match.group(4)
    if month and not _is_day(int(year), int(month), int(day or 1)):
        return False
    return clock is None or is_time(clock)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year % 400 + 400, month, day)  # the calendar repeats after 400 years; Python knows no year 0
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def is_time(text: str) -> bool:
    if len(text) > _LONGEST or not _TIME.match(text):
        return False
    digits = re.sub(r"[.,]\d+|[+-]\d\d(?::?\d\d)?\Z|[ZT:]", "", text)
    hour, minute, second = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:6] or 0)
    return (hour < 24 or (hour == 24 and not minute and not second)) and minute < 60 and second <= 60


def is_duration(text: str) -> bool:
    return len(text) <= _LONGEST and _DURATION.match(text) is not None


def is_number(text: str) -> bool:
    return len(text) <= _LONGEST and _NUMBER.match(text) is not None


def is_price(text: str) -> bool:
    return len(text) <= _LONGEST and _PRICE.match(text) is not None


def is_language(text: str) -> bool:
    """A BCP 47 tag whose primary language exists; three letters are taken as they are."""
    match = _LANGUAGE.match(text) if len(text) <= _LONGEST else None
    return match is not None and (len(match[1]) != 2 or match[1].lower() in _LANGUAGES)


def is_currency(text: str) -> bool:
    """An ISO 4217 code or a ticker. A name with a blank may be that of a local exchange system, which is allowed."""
    return text in _CURRENCIES or " " in text


def is_country(text: str) -> bool:
    """Names are allowed everywhere, so that only two letters are taken for a code."""
    return len(text) != 2 or not text.isascii() or not text.isalpha() or text.upper() in _COUNTRIES


def is_gtin(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    return len(digits) in (8, 12, 13, 14) and digits.isascii() and digits.isdigit() and _gs1_sum(digits) % 10 == 0


def is_isbn(text: str) -> bool:
    digits = text.upper().removeprefix("ISBN").lstrip(": ").replace("-", "").replace(" ", "")
    if not digits.isascii():
        return False
    if len(digits) == 13 and digits.isdigit():
        return _gs1_sum(digits) % 10 == 0
    if len(digits) == 10 and digits[:9].isdigit() and (digits[9].isdigit() or digits[9] == "X"):
        numbers = [10 if digit == "X" else int(digit) for digit in digits]
        return sum(weight * number for weight, number in zip(range(10, 0, -1), numbers, strict=True)) % 11 == 0
    return False


def _gs1_sum(digits: str) -> int:
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))


def is_latitude(text: str) -> bool:
    return is_number(text) and -90.0 <= float(text) <= 90.0


def is_longitude(text: str) -> bool:
    return is_number(text) and -180.0 <= float(text) <= 180.0


def is_mail(text: str) -> bool:
    return len(text) <= 320 and _MAIL.match(text) is not None


def is_url(text: str) -> bool:
    return _URL.match(text) is not None and not is_misspelt_scheme(text.partition(":")[0])


@lru_cache(maxsize=256)
def is_misspelt_scheme(scheme: str) -> bool:
    """`htp`, `htps`, `hhtps`: so near to http that nothing else can be meant."""
    scheme = scheme.lower()
    if scheme in ("http", "https", "ftp", "httpx") or not scheme.isalpha() or len(scheme) > 8:
        return False
    return any(SequenceMatcher(None, scheme, right).ratio() > 0.75 for right in ("http", "https"))


class ValueRule(msgspec.Struct, frozen=True):
    """What a text must be, and what to say if it is not. `{0}` in the message stands for the property."""

    code: str
    accepts: Callable[[str], bool]
    message: str
    expected: str
    severity: Severity = "error"


DATE_RULE = ValueRule("bad-date", is_date, "{0} is not a date of ISO 8601", "2026-05-12 or 2026-05-12T19:30:00+02:00")
TIME_RULE = ValueRule(
    "bad-date", lambda text: is_time(text) or is_date(text), "{0} is not a time of ISO 8601", "19:30 or 19:30:00+02:00"
)
DURATION_RULE = ValueRule("bad-duration", is_duration, "{0} is not a duration of ISO 8601", "PT1H30M or P3D")
_PRICE_RULE = ValueRule("bad-price", is_price, "{0} is not a plain number", "1299.00, the currency in priceCurrency")
_GTIN_RULE = ValueRule("bad-gtin", is_gtin, "{0} is not a GTIN: wrong length or check digit", "8, 12, 13 or 14 digits")
_CURRENCY_RULE = ValueRule("bad-currency", is_currency, "{0} is not a currency code of ISO 4217", "EUR, USD, JPY …")
_RATING_RULE = ValueRule("bad-number", is_number, "{0} is not a number", "4.5, with a point")
SPECIAL: dict[str, ValueRule] = {
    "price": _PRICE_RULE,
    "lowPrice": _PRICE_RULE,
    "highPrice": _PRICE_RULE,
    "minPrice": _PRICE_RULE,
    "maxPrice": _PRICE_RULE,
    "priceCurrency": _CURRENCY_RULE,
    "salaryCurrency": _CURRENCY_RULE,
    "currency": _CURRENCY_RULE,
    "inLanguage": ValueRule("bad-language", is_language, "{0} is not a language tag", "en, de-AT, zh-Hant", "warning"),
    "addressCountry": ValueRule("bad-country", is_country, "{0} is not a country code", "GB, DE, US …", "warning"),
    "gtin": _GTIN_RULE,
    "gtin8": _GTIN_RULE,
    "gtin12": _GTIN_RULE,
    "gtin13": _GTIN_RULE,
    "gtin14": _GTIN_RULE,
    "isbn": ValueRule("bad-isbn", is_isbn, "{0} is not an ISBN: wrong length or check digit", "10 or 13 digits"),
    "latitude": ValueRule("bad-coordinate", is_latitude, "{0} is not a latitude", "a number from -90 to 90"),
    "longitude": ValueRule("bad-coordinate", is_longitude, "{0} is not a longitude", "a number from -180 to 180"),
    "email": ValueRule("bad-email", is_mail, "{0} is not a mail address", "name@example.org"),
    "ratingValue": _RATING_RULE,
    "bestRating": _RATING_RULE,
    "worstRating": _RATING_RULE,
}
"""Rules of schema.org's properties that accept text; those with dates and durations follow from the ranges."""

OTHER: dict[str, ValueRule] = {
    "<http://www.w3.org/2003/01/geo/wgs84_pos#lat>": SPECIAL["latitude"],
    "<http://www.w3.org/2003/01/geo/wgs84_pos#long>": SPECIAL["longitude"],
    "<http://purl.org/goodrelations/v1#hasCurrency>": _CURRENCY_RULE,
    "<http://purl.org/goodrelations/v1#hasEAN_UCC-13>": _GTIN_RULE,
    "<http://purl.org/goodrelations/v1#hasGTIN-14>": _GTIN_RULE,
    "<http://purl.org/goodrelations/v1#validFrom>": DATE_RULE,
    "<http://purl.org/goodrelations/v1#validThrough>": DATE_RULE,
    "<http://purl.org/dc/terms/issued>": DATE_RULE,
    "<http://purl.org/dc/terms/modified>": DATE_RULE,
    "<http://purl.org/dc/terms/created>": DATE_RULE,
    "<http://purl.org/dc/terms/language>": SPECIAL["inLanguage"],
    "<http://purl.org/dc/elements/1.1/language>": SPECIAL["inLanguage"],
    "<http://ogp.me/ns/article#published_time>": DATE_RULE,
    "<http://ogp.me/ns/article#modified_time>": DATE_RULE,
    "<http://ogp.me/ns/product#price:currency>": _CURRENCY_RULE,
    "<http://ogp.me/ns#price:currency>": _CURRENCY_RULE,
}
"""The same for other vocabularies, by the property's term."""

XSD_RULES: dict[str, ValueRule] = {
    "date": DATE_RULE,
    "dateTime": DATE_RULE,
    "gYear": DATE_RULE,
    "gYearMonth": DATE_RULE,
    "time": TIME_RULE,
    "duration": DURATION_RULE,
}
"""What a literal's own datatype of XML Schema promises."""

EXPIRES = "priceValidUntil"
"""The day after which an offer is void."""
PAIRS = (
    ("startDate", "endDate"),
    ("validFrom", "validThrough"),
    ("availabilityStarts", "availabilityEnds"),
    ("datePosted", "validThrough"),
    ("birthDate", "deathDate"),
    ("foundingDate", "dissolutionDate"),
    ("startTime", "endTime"),
    ("coverageStartTime", "coverageEndTime"),
)
"""Properties of which the second must not be before the first."""
MARKED = frozenset(("ratingValue", EXPIRES, *(end for _, end in PAIRS)))
"""Properties whose value is compared with others of the same item."""
