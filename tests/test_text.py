"""What of a text is spelled out, and what is left as it is."""

import json
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmark.text import (
    JOINERS,
    counted,
    first_unprintable,
    is_or_are,
    listed,
    shell_path,
    shell_word,
    spelled_out,
    spelled_out_json,
)

STEERING = {
    "\x1b": "\\x1b",
    "\n": "\\n",
    "\x7f": "\\x7f",
    "\x9b": "\\x9b",
    "\u061c": "\\u061c",
    "\u200b": "\\u200b",
    "\u200e": "\\u200e",
    "\u2028": "\\u2028",
    "\u202e": "\\u202e",
    "\u2066": "\\u2066",
    "\ufeff": "\\ufeff",
    "\ud800": "\\ud800",
    "\U000e0041": "\\U000e0041",
}


@pytest.mark.parametrize("character", STEERING)
def test_what_steers_or_hides_is_spelled_out(character: str) -> None:
    assert spelled_out(f"a{character}b") == f"a{STEERING[character]}b"
    assert first_unprintable(f"a{character}b") == STEERING[character]


@pytest.mark.parametrize("text", ["zürich", "東京", "דוד", "محمد", "हिन्दी", "e\u0301", "🙂", "a b", "", "50 % \\ \"'"])
def test_letters_of_all_scripts_stay(text: str) -> None:
    assert spelled_out(text) == text
    assert first_unprintable(text) is None


def test_joiners_are_kept_where_they_are_asked_for() -> None:
    assert spelled_out("क्\u200dष", keep=JOINERS) == "क्\u200dष"
    assert spelled_out("क्\u200dष") == "क्\\u200dष"


@given(st.text(), st.sampled_from([None, 1]))
def test_a_json_document_says_the_same_and_steers_nothing(text: str, indent: int | None) -> None:
    document = spelled_out_json(json.dumps({text: [text]}, ensure_ascii=False, indent=indent))
    assert json.loads(document) == {text: [text]}
    assert all(line.isprintable() for line in document.split("\n"))


@pytest.mark.parametrize("text", list(STEERING))
def test_each_of_them_survives_json(text: str) -> None:
    assert json.loads(spelled_out_json(json.dumps(text, ensure_ascii=False))) == text


def test_counts_are_written_as_people_say_them() -> None:
    assert [counted(count, "step") for count in (0, 1, 2, 2910)] == ["0 steps", "1 step", "2 steps", "2,910 steps"]
    assert counted(3, "identity", "identities") == "3 identities"
    assert (is_or_are(1), is_or_are(0), is_or_are(2)) == ("is", "are", "are")


def test_long_lists_are_cut_and_the_rest_is_counted() -> None:
    assert [listed(["a", "b", "c"][:count], 3) for count in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed([str(i) for i in range(1500)], 2) == "0, 1 and 1,498 more"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12))
@settings(max_examples=30)
def test_a_word_reaches_a_program_as_it_was(word: str) -> None:
    """Through bash, whatever is in it; and what is typed prints."""
    typed = shell_word(word)
    assert typed.isprintable()
    ran = subprocess.run(["bash", "-c", f"printf %s {typed}"], capture_output=True, check=True)
    assert ran.stdout == word.encode("utf-8")


def test_a_path_is_no_option_and_need_not_be_utf8() -> None:
    assert shell_path("-rf") == "./-rf"
    assert shell_path("a b") == "'a b'"
    assert shell_path("log-\udcff.jsonl") == r"$'log-\377.jsonl'"
