"""Sites: hosts, traps, and links between sites."""

from __future__ import annotations

from urllib.parse import quote

from starlette.testclient import TestClient

from unit.web.web_fixture import BOOK, EVIL, PERSON

HTML = {"accept": "text/html"}


def test_traps_are_shown_with_host_reason_and_number(client: TestClient) -> None:
    found = client.get("/sites.json?sort=traps").json()
    assert [trap["reason"] for trap in found["traps"]] == ["endless calendar"]
    assert found["hosts"][0]["host"] == "evil.example" and found["hosts"][0]["trapped"] == 1234
    page = client.get("/sites", headers=HTML).text
    assert "endless calendar" in page and "1\u202f234" in page
    assert "<script>window.hit" not in page


def test_a_site_shows_its_own_traps_only(client: TestClient) -> None:
    assert client.get("/site/evil.example.json").json()["traps"][0]["count"] == 1234
    assert client.get("/site/books.example.json").json()["traps"] == []
    assert "endless calendar" in client.get("/site/evil.example", headers=HTML).text
    assert "Traps" not in client.get("/site/books.example", headers=HTML).text


def test_who_links_to_a_site_and_where_it_links_to(client: TestClient) -> None:
    links = client.get("/site/books.example.json").json()["links"]
    assert {(found["site"], found["links"]) for found in links["inward"]} == {
        ("people.example", 1),
        ("evil.example", 1),
    }
    assert {found["site"]: found["example"] for found in links["outward"]} == {
        "people.example": PERSON,
        "evil.example": EVIL,
    }
    assert links["unread"] == 1 and links["inside"] == 0 and links["partial"] is False
    assert [(found["url"], found["links"]) for found in links["popular"]] == [(BOOK, 2)]
    own = client.get("/site/people.example.json").json()["links"]
    assert own["inside"] == 1 and own["popular"][0]["links"] == 1, "a page's link to itself makes it no more popular"


def test_the_links_are_drawn_and_also_written(client: TestClient) -> None:
    page = client.get("/site/books.example?tab=links", headers=HTML).text
    assert "Sites that link here" in page and "Sites it links to" in page
    assert 'src="/site/books.example/neighbours.svg"' in page
    drawn = client.get("/site/books.example/neighbours.svg")
    assert drawn.headers["content-type"].startswith("image/svg+xml") and drawn.text.count("1 link") == 4
    assert quote("people.example") in drawn.text
    assert client.get("/site/nowhere.example/neighbours.svg").status_code == 404
