"""The beginning of every page, and text of others on it."""

from pages import check_inert

from agentmark.report.html import isolated, opening


def test_a_page_lets_nothing_in_but_its_own_style() -> None:
    taken = check_inert(opening('a "title" </title><script>', "body { color:red; }") + "<p>text</p></html>")
    assert taken.style == "body { color:red; }"
    assert 'a "title" </title><script>' in taken.text


def test_text_of_others_is_cut_escaped_and_isolated() -> None:
    assert isolated("a<b> & \u202ec\x1b\n") == "<bdi>a&lt;b&gt; &amp; \\u202ec\\x1b\\n</bdi>"
    assert isolated("x" * 30, 12) == "<bdi>xxxxxxxx…xxx</bdi>"
    assert isolated("👩\u200d👧") == "<bdi>👩\u200d👧</bdi>"
