"""A small office that a model works in: files, mail, a calendar, seven real tools, and tasks that can be checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agentmark.elicit.situation import ANSWER, Candidate

PEOPLE = ("ana", "ben", "chen")
FILES = {
    "invoice.txt": "Invoice 88 to Ana: paper 112, chairs 300. Total 412.",
    "notes.txt": "Launch moved to 2027-03-14. Ben brings the cake.",
    "wifi.txt": "Guest network: password blue-kettle.",
    "permits.txt": "Parking permit for Chen, bay 7, until June.",
    "old_draft.txt": "A draft that nobody needs.",
    "todo.txt": "Water the plants.",
}


@dataclass(slots=True)
class Office:
    """The world. Tools change it, and a task looks at what became of it."""

    files: dict[str, str] = field(default_factory=lambda: dict(FILES))
    outbox: list[tuple[str, str]] = field(default_factory=list)
    calendar: list[tuple[str, str]] = field(default_factory=list)
    answer: str | None = None

    def tools(self) -> dict[str, "Tool"]:
        """What can be called now; the schemas name the files that there are."""
        file, person, text = {"enum": sorted(self.files)}, {"enum": list(PEOPLE)}, {"type": "string", "maxLength": 40}
        listed = [
            Tool("list_files", "see the names of all files", {}, self._list_files),
            Tool("read_file", "read one file", {"file": file}, self._read_file),
            Tool("find_word", "find the files that hold a word", {"word": text}, self._find_word),
            Tool("add_line", "add a line to a file", {"file": file, "text": text}, self._add_line),
            Tool("delete_file", "delete a file", {"file": file}, self._delete_file),
            Tool("send_mail", f"send a mail to {', '.join(PEOPLE)}", {"to": person, "text": text}, self._send_mail),
            Tool("add_calendar_event", "put an event in the calendar", {"date": text, "text": text}, self._add_event),
        ]
        return {tool.name: tool for tool in listed}

    def _list_files(self) -> str:
        return ", ".join(sorted(self.files))

    def _read_file(self, file: str) -> str:
        return self.files[file]

    def _find_word(self, word: str) -> str:
        found = [name for name, text in sorted(self.files.items()) if word and word.lower() in text.lower()]
        return ", ".join(found) or "none"

    def _add_line(self, file: str, text: str) -> str:
        self.files[file] += f"\n{text}"
        return "added"

    def _delete_file(self, file: str) -> str:
        del self.files[file]
        return "deleted"

    def _send_mail(self, to: str, text: str) -> str:
        self.outbox.append((to, text))
        return "sent"

    def _add_event(self, date: str, text: str) -> str:
        self.calendar.append((date, text))
        return "added"


@dataclass(frozen=True, slots=True)
class Tool:
    """Its name, what it does in a few words, the JSON schemas of its arguments, and the function itself."""

    name: str
    description: str
    parameters: dict[str, dict[str, Any]]
    function: Callable[..., str]

    @property
    def candidate(self) -> Candidate:
        """As the model is asked about it: in words. Seven schemas would make the question five times as long."""
        return Candidate(self.name, self.description)

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": self.parameters,
            "required": list(self.parameters),
            "additionalProperties": False,
        }

    def call(self, arguments: dict[str, Any]) -> str:
        """What the tool says. Wrong arguments are told to the model, as a tool server would."""
        if set(arguments) != set(self.parameters) or not all(isinstance(value, str) for value in arguments.values()):
            return "error: wrong arguments"
        for name, schema in self.parameters.items():
            if "enum" in schema and arguments[name] not in schema["enum"]:
                return f"error: no such {name}"
        return self.function(**arguments)


ANSWER_OPTION = Candidate(ANSWER, "nothing is left to do but to tell the user")


@dataclass(frozen=True, slots=True)
class Task:
    """What the user wants, and how to see that it was done."""

    request: str
    done: Callable[[Office], bool]


def _only_missing(office: Office, file: str) -> bool:
    return set(FILES) - set(office.files) == {file}


def _answered(office: Office, words: str) -> bool:
    return office.answer is not None and words in office.answer.lower()


TASKS = (
    Task("What is the guest wifi password?", lambda office: _answered(office, "blue-kettle")),
    Task(
        "Mail Ana the total of invoice 88.", lambda office: any(to == "ana" and "412" in t for to, t in office.outbox)
    ),
    Task("Delete old_draft.txt.", lambda office: _only_missing(office, "old_draft.txt")),
    Task(
        "Put the launch in the calendar.",
        lambda office: any("2027-03-14" in date for date, _ in office.calendar),
    ),
    Task("Which file is about parking?", lambda office: _answered(office, "permits.txt")),
    Task(
        "Add 'call the plumber' to todo.txt.",
        lambda office: "call the plumber" in office.files.get("todo.txt", "").lower(),
    ),
)
