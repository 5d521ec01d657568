"""Text of others, where people read it: on a terminal, on a page, in a list of names.

What does not print can steer a terminal, turn the order of the letters around it, or hide: control characters, marks of
direction, ends of lines and paragraphs, spaces without width or of odd width, tags, halves of surrogate pairs, and code
points that nobody has given a meaning. Letters, marks, digits and signs of all scripts print.
"""

import shlex
from collections.abc import Sequence

# Joiners that emoji and some scripts need, for places where nothing depends on telling two names apart.
JOINERS = "\u200c\u200d"


def spelled_out(text: str, *, keep: str = "") -> str:
    """The text with everything that does not print as an escape of Python's: \\x1b, \\u202e, \\U000e0041."""
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text])


def spelled_out_json(document: str) -> str:
    """A JSON document in the escapes of JSON. It says the same: outside strings JSON has nothing that does not print
    but ends of lines, which are kept."""
    if document.isprintable():
        return document
    return "".join([c if c.isprintable() or c == "\n" else _json_escape(c) for c in document])


def shell_word(word: str) -> str:
    """A word of a command as it is typed in a shell. What does not print stands as an escape that bash and zsh read."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = [_shell_escape(character) for character in word]
    return f"$'{''.join(escaped)}'"


def shell_path(path: str) -> str:
    """The same of a file, which is no option even if its name begins with a dash."""
    return shell_word(f"./{path}" if path.startswith("-") else path)


def _shell_escape(character: str) -> str:
    if character.isprintable():
        return f"\\{character}" if character in "\\'" else character
    # In octal, which ends after three digits whatever follows; a byte that is not UTF-8 is itself.
    return "".join([f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape")])


# A spreadsheet takes a cell that begins so for a formula, and runs it; some take the wide signs of East Asian keyboards
# too. Names and sessions are other people's text.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def spreadsheet_cell(text: str) -> str:
    """Text for a cell of a spreadsheet: nothing in it steers, and nothing is taken for a formula."""
    shown = spelled_out(text)
    return f"'{shown}" if shown.startswith(FORMULA_STARTS) else shown


def first_unprintable(text: str) -> str | None:
    """The first character that does not print, as an escape; None if all do."""
    return next((c.encode("unicode_escape").decode("ascii") for c in text if not c.isprintable()), None)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """So many of something: "1 step", "2,910 steps"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def listed(items: Sequence[str], most: int, *, total: int | None = None) -> str:
    """The first few of a list, and how many more there are: "a, b and c", "a, b and 12 more". `total` is how many there
    are, if not all of them are here."""
    count = len(items) if total is None else total
    if count > most:
        return f"{', '.join(items[:most])} and {count - most:,} more"
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def _json_escape(character: str) -> str:
    # Beyond U+FFFF, JSON names a character by the two halves of UTF-16. A half that stands alone stays one.
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join([f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)])
