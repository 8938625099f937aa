"""Features that tell a search form from other forms: structure first, then words in many languages.

Structure does not depend on the language: the number of text boxes, the kinds of controls, GET or POST. Names chosen by
programmers (`q`, `keyword`, `searchword`) hardly do, since they are English almost everywhere. Words for visitors are
matched against a table of some forty languages. The weights are learned by `tools/train_form_weights.py`; this module
only computes the features.
"""

from __future__ import annotations

import re

from quadloom.crawling.topical.forms.html_forms import Control, Form

BUTTONS = frozenset(("submit", "image", "button", "reset"))
_LINES = frozenset(("text", "search", "", "url", "tel", "number", "email"))
_KNOWN = BUTTONS | {
    "password", "hidden", "checkbox", "radio", "select", "textarea", "file", "color", "range", "date",
    "datetime-local", "time", "month", "week",
}  # fmt: skip  # browsers show a type that they do not know as a line of text

QUERY_NAME = re.compile(
    r"(?i)^(q|s|k|w|wd|kw|kwd?s?|qs|qt|qry|query|search|find|text|term|terms|keys?|keywords?|words?|st|str|"
    r"p|sq|string|story|searchstring|pattern|what|query_?string|search_?(word|term|text|query|for|key|box|input)s?|"
    r"(search|q)_?q(uery)?|as_q|field-keywords|_nkw|ntt|vp|su|poisk|buscar?|busqueda|suche|suchbegriff|recherche|zoek|cerca|"
    r"title|name|query\[.*|edit.*search.*|.*search_block.*|.*search_theme.*|.*(txt|tb|box)_?search.*|.*search_?(txt|text|box|field).*)$"
)
SEARCHY = re.compile(
    r"(?i)search|srch|suche?|recherch|poisk|busca|busqueda|zoek|cerca|find|query|keyword|sök|szukaj|hledat"
)
SEARCH_WORDS = re.compile(
    r"(?i)search|find\b|look ?up|keyword|suche|suchbegriff|finden|recherch|cherch|trouver|rechercher|busca|búsqueda|"
    r"pesquis|procur|localizar|cerca|ricerca|trova|zoek|vind|sök|søk|søg|leita|haku|hae\b|etsi|szuk|wyszuk|hled|vyhľad|"
    r"hľad|keres|căut|caut|търс|поиск|найти|искать|пошук|шукати|знайти|претра|pretra|traži|išči|ieškot|paieška|mekl|otsi|"
    r"αναζ|ψάξ|\bara\b|arama|بحث|ابحث|جستجو|חיפוש|חפש|खोज|অনুসন্ধান|தேடு|ค้นหา|tìm|\bcari\b|検索|搜|查询|查詢|查找|검색|찾기|キーワード|关键|關鍵"
)
OTHER_WORDS = re.compile(
    r"(?i)log.?in|sign.?in|sign.?up|logon|regist|subscri|newsletter|password|passw|e-?mail|comment|contact|cart|basket|"
    r"checkout|coupon|vote|poll|captcha|unsubscribe|account|member|user.?name|anmeld|abonn|iscri|inscri|connexion|entrar|"
    r"войти|регист|логин|пароль|подпис|登录|登入|注册|註冊|ログイン|会員|로그인|donat|order|buy\b|purchase|reply|message|forgot|"
    r"recover|reset|feedback|quote|apply|book|reserv|upload|share|send\b|mailchimp|list-manage|feedburner|signup|"
    r"warenkorb|panier|carrito|koszyk|корзин|заказ"
)
_CART = re.compile(r"(?i)cart|basket|buy|checkout|order|qty|quantity|product_?id|variant|panier|warenkorb")
_LOGIN = re.compile(
    r"(?i)log.?in|logon|signin|sign_in|session|auth|passw|user_?(name|id)|member|account|regist|signup|join"
)
_MAIL = re.compile(r"(?i)e-?mail|subscri|newsletter|mailing|feedburner|list-manage")
_FILTER = re.compile(
    r"(?i)sort|order_?by|per.?page|limit|view|display|filter|price|min|max|date|lang|currency|zip|city|state|country"
)
_TALK = re.compile(r"(?i)comment|reply|message|contact|feedback|subject|phone|first.?name|last.?name|address")

NAMES = (
    "bias", "boxes=1", "boxes=2", "boxes>2", "boxes=0", "type=search", "role=search", "get", "post", "box name exact",
    "box searchy", "box words", "button words", "button searchy", "form marks searchy", "action searchy",
    "around searchy", "text words", "other in marks", "other in action", "other in box", "other in button",
    "other in words",
    "passwords", "mails", "textareas", "files", "checkboxes", "radios", "selects", "hiddens", "submits", "images",
    "no button", "words length", "cart names", "login names", "mail names", "filter names", "talk names", "no action",
    "scripted", "place", "multipart", "in header", "in footer", "only submit and hidden", "any sign", "two signs",
    "many options", "tel or number", "action has query", "name=q", "name=s", "value searchy", "strong others",
)  # fmt: skip


def text_boxes(form: Form) -> list[Control]:
    """Controls for one line of text."""
    return [control for control in form.controls if control.kind in _LINES or control.kind not in _KNOWN]


def features(form: Form) -> list[float]:
    """The features in the order of `NAMES`, each between 0 and about 3."""
    boxes = text_boxes(form)
    kinds = [control.kind for control in form.controls]
    count = kinds.count
    buttons = [c for c in form.controls if c.kind in BUTTONS]
    names = " ".join(c.name for c in form.controls)
    box = best_box(form)
    box_names = f"{box.name} {box.marks}" if box else ""
    box_words = f"{box.words} {box.value}" if box else ""
    button_words = " ".join(f"{c.words} {c.value}" for c in buttons)
    button_marks = " ".join(f"{c.name} {c.marks}" for c in buttons)
    submits = count("submit") + count("image")
    action = form.action.partition("://")[2].partition("/")[2]
    exact = bool(box and QUERY_NAME.match(box.name))
    searchy = [
        bool(SEARCHY.search(box_names)),
        bool(SEARCH_WORDS.search(box_words)),
        bool(SEARCH_WORDS.search(button_words)),
        bool(SEARCHY.search(button_marks)),
        bool(SEARCHY.search(form.marks)),
        bool(SEARCHY.search(action)),
    ]
    others = [
        bool(OTHER_WORDS.search(form.marks)),
        bool(OTHER_WORDS.search(action)),
        bool(OTHER_WORDS.search(f"{box_names} {box_words}")),
        bool(OTHER_WORDS.search(f"{button_words} {button_marks}")),
        bool(OTHER_WORDS.search(form.words)),
    ]
    signs = sum(searchy) + exact + ("search" in kinds) + (form.role == "search")
    around = form.around.lower()
    return [
        1.0, len(boxes) == 1, len(boxes) == 2, len(boxes) > 2, not boxes, "search" in kinds, form.role == "search",
        form.method == "get", form.method == "post", exact, searchy[0], searchy[1], searchy[2], searchy[3], searchy[4],
        searchy[5], bool(SEARCHY.search(around)), bool(SEARCH_WORDS.search(form.words)), *others[:5],
        min(count("password"), 2), min(count("email"), 2), min(count("textarea"), 2), count("file") > 0,
        min(count("checkbox"), 6) / 3, min(count("radio"), 6) / 3, min(count("select"), 6) / 3,
        min(count("hidden"), 9) / 3, min(submits, 3) / 2, count("image") > 0, not buttons,
        min(len(form.words), 600) / 200, bool(_CART.search(f"{names} {action}")),
        bool(_LOGIN.search(f"{names} {action}")), bool(_MAIL.search(f"{names} {action} {box_words}")),
        bool(_FILTER.search(names)), bool(_TALK.search(names)), not form.has_action, form.scripted,
        min(form.place, 6) / 3, form.multipart, "header" in around or "nav" in around or "top" in around,
        "foot" in around, not boxes and bool(buttons), signs > 0, signs > 1,
        sum(c.options for c in form.controls) > 20, count("tel") + count("number") > 0, "?" in form.action,
        bool(box and box.name == "q"), bool(box and box.name == "s"), bool(box and SEARCH_WORDS.search(box.value)),
        sum(others) >= 3,
    ]  # fmt: skip


def best_box(form: Form) -> Control | None:
    """The control for the query: type=search, then a typical name or label, then the first text box."""
    boxes = [control for control in text_boxes(form) if control.name] or text_boxes(form)
    if not boxes:
        return None

    def rank(control: Control) -> tuple[bool, bool, bool, bool, bool]:
        named = bool(QUERY_NAME.match(control.name))
        searchy = bool(SEARCHY.search(f"{control.name} {control.marks}"))
        return (
            control.kind not in ("email", "tel", "number", "url"),
            control.kind == "search",
            named or searchy,
            bool(SEARCH_WORDS.search(control.words)),
            named and searchy,
        )

    return max(boxes, key=rank)
