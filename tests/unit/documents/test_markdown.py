"""Pages as Markdown: what survives, and that nothing in it is HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.documents.transform import transform
from thoroughness import examples


def markdown(body: str, content_type: str = "text/html; charset=utf-8") -> str:
    return transform(body.encode(), url="https://a.example/b/", content_type=content_type).markdown


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<h1>Title</h1><h3>Part</h3>", "# Title\n\n### Part\n"),
        ("<p>a <b>bold</b> <i> word </i>, w<b>o</b>rd<p>b", "a **bold**  *word* , w**o**rd\n\nb\n".replace("  ", " ")),
        ("<p>a<br>b", "a\\\nb\n"),
        ("<ul><li>one<li>two<ul><li>three</ul></ul>", "- one\n\n- two\n\n  - three\n"),
        ("<ol><li>one<li>two</ol>", "1. one\n2. two\n"),
        ("<blockquote><p>a<p>b</blockquote>", "> a\n>\n> b\n"),
        ("<p><a href='/x?a=(1)'>link</a>", "[link](https://a.example/x?a=%281%29)\n"),
        ("<base href=/c/><p><a href=d>link</a>", "[link](https://a.example/c/d)\n"),
        ("<p>a <a href='javascript:alert(1)'>b</a> <a href='data:text/html,x'>c</a>", "a b c\n"),
        ("<p>see <img src=x alt='a  [pier]'> there", "see a \\[pier\\] there\n"),
        ("<pre><code class='language-py'>a &lt; b\n  c</code></pre>", "```py\na < b\n  c\n```\n"),
        ("<pre>```\n</pre>", "````\n```\n````\n"),
        ("<p>call <code>a|b `c`</code>", "call `` a|b `c` ``\n"),
        ("<code>a<div>&lt;script></div></code>", "`a`\n\n&lt;script&gt;\n"),
        ("<table><tr><th>a<th>b|<tr><td>1<td><code>x|</code></table>", "| a | b\\| |\n| --- | --- |\n| 1 | `x\\|` |\n"),
        ("<table><tr><td>1<td>2<tr><td>3</table>", "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |\n"),
        ("<table><tr><td><h2>a</h2><td><p>b</table>", "## a\n\nb\n"),
        ("<dl><dt>term<dd>what it is</dl>", "**term**\n\nwhat it is\n"),
        ("<p># 1<br>2. 3<br>- 4<br>&gt; 5<br>* 6", "\\# 1\\\n2\\. 3\\\n\\- 4\\\n&gt; 5\\\n\\* 6\n"),
        ("<p>&lt;script>a&lt;/script> &amp;lt; ![x](y)", "&lt;script&gt;a&lt;/script&gt; &amp;lt; \\!\\[x\\](y)\n"),
        ("<script>a</script><style>b</style><svg><text>c</text></svg><p>d", "d\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_elements(markup: str, expected: str) -> None:
    assert markdown(f"<!doctype html><body>{markup}") == expected


def test_only_the_main_part() -> None:
    prose = (
        "<p>The harbour was closed for three days after the storm, and no ship could leave it before Sunday.</p>" * 3
    )
    written = markdown(
        f"<h1>Storm</h1><nav>menu</nav><div class=comments><p>No.</div><div>{prose}</div><footer>end</footer>"
    )
    assert written.startswith("# Storm\n\nThe harbour")
    assert not any(word in written for word in ("menu", "No.", "end"))


def test_texts_and_data() -> None:
    assert markdown("a <b>\nc\n\n# d", "text/plain") == "a &lt;b&gt;\\\nc\n\n\\# d\n"
    assert markdown('{"a": 1}', "application/json") == ""


PARTS = st.sampled_from(
    [
        "<p>", "</p>", "<b>", "</b>", "<i>", "</i>", "<a href=/x>", "<a href='javascript:x'>", "</a>", "<ul>", "<li>",
        "</ul>", "<table>", "<tr>", "<td>", "<th>", "</table>", "<h2>", "</h2>", "<blockquote>", "</blockquote>",
        "<br>", "<img alt='&lt;img onerror=x>'>", "<div>", "</div>", "<svg>", "<script>", "</script>", "&lt;script>",
        "&lt;", "<!-- x -->", "<?x?>", "*", "_", "`", "```\n", "[a](javascript:b)", "\\", "|", "> ", "# ", "words ",
        "<dl>", "<dt>", "<dd>", "\0",
    ]
)  # fmt: skip


@settings(max_examples=examples(200, 5000))
@given(st.lists(PARTS, max_size=30))
def test_nothing_in_it_is_html(parts: list[str]) -> None:
    written = markdown("<!doctype html><body>" + "".join(parts))
    assert "<" not in written
    assert not re.search(r"(?<!\\)\]\((?!https?:|mailto:)", written), "an escaped bracket makes no link"


@settings(max_examples=examples(100, 3000))
@given(st.lists(st.one_of(PARTS, st.sampled_from(["<pre>", "</pre>", "<code>", "</code>"])), max_size=30))
def test_html_stands_in_code_only(parts: list[str]) -> None:
    outside: list[str] = []
    fence = ""
    for line in markdown("<!doctype html><body>" + "".join(parts)).split("\n"):
        bare = line.lstrip("> -0123456789.")
        if fence:
            fence = "" if bare == fence else fence
        elif bare.startswith("```") and not bare.strip("`"):
            fence = bare
        else:
            outside.append(line)
    text = "\n".join(outside)
    assert not fence
    assert "<" not in text or "`" in text
