"""A task that an agent with tools can do in many orders, and that ends the same in all of them."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ITEMS = ("kettle", "lamp", "mirror", "notebook", "pillow", "radio", "teapot", "umbrella")
CITIES = ("Bergen", "Lyon", "Oslo", "Porto", "Turin")
_TASK = re.compile(r"Buy: (?P<items>[\w, ]+)\. Send them to (?P<city>\w+)")
LOOKUPS = ("search", "price")


@dataclass(frozen=True, slots=True)
class Order:
    """What an errand asks for."""

    items: tuple[str, ...]
    city: str


def order_in(text: str) -> Order | None:
    """The order that a text states, if it states one."""
    found = _TASK.search(text)
    if found is None:
        return None
    return Order(tuple([item.strip() for item in found["items"].split(",")]), found["city"])


class Errand:
    """Buy some things and have them sent: `task` says what, `tools` are plain functions, `call` calls one by name.

    Things may be added and the address given in any order; looking things up changes nothing; shipping works once all
    is there. `done` says whether it was shipped, and `answer` what a finished agent must then have told its user: both
    are the same whatever order was taken.
    """

    def __init__(self, seed: int = 0, *, items: int = 3) -> None:
        rng = random.Random(f"errand {seed}")
        self.order = Order(tuple(sorted(rng.sample(ITEMS, items))), rng.choice(CITIES))
        self.basket: set[str] = set()
        self.address: str | None = None
        self.shipped: str | None = None
        # Every call, in order, as (name, arguments).
        self.calls: list[tuple[str, dict[str, Any]]] = []

    @property
    def task(self) -> str:
        """What the user says."""
        return (
            f"Buy: {', '.join(self.order.items)}. Send them to {self.order.city}, and tell me what the parcel says."
            " You may look things up first."
        )

    @property
    def done(self) -> bool:
        return self.shipped == self.answer

    @property
    def answer(self) -> str:
        """What the last message of a finished agent contains."""
        return _label(self.order.items, self.order.city)

    def finished(self, said: str | None) -> bool:
        """Whether the errand is done and the agent said so: the end is as it would be without AgentMark."""
        return self.done and self.answer in (said or "")

    @property
    def tools(self) -> tuple[Callable[..., str], ...]:
        return (self.search, self.price, self.add, self.deliver_to, self.ship)

    def search(self, query: str) -> str:
        """Look an item up in the catalogue."""
        self.calls.append(("search", {"query": query}))
        found = [item for item in ITEMS if item in query]
        return f"Found: {', '.join(found)}." if found else "Nothing found."

    def price(self, item: str) -> str:
        """Say what an item costs."""
        self.calls.append(("price", {"item": item}))
        return f"{item}: {_price(item)} crowns." if item in ITEMS else f"There is no {item}."

    def add(self, item: str, note: str = "") -> str:
        """Put an item into the basket."""
        self.calls.append(("add", {"item": item, "note": note}))
        if item not in ITEMS:
            return f"There is no {item}."
        self.basket.add(item)
        return f"{item} is in the basket."

    def deliver_to(self, city: str) -> str:
        """Set the city that the parcel goes to."""
        self.calls.append(("deliver_to", {"city": city}))
        self.address = city
        return f"The parcel goes to {city}."

    def ship(self) -> str:
        """Send the parcel off, once the basket is complete and the city is set."""
        self.calls.append(("ship", {}))
        missing = [item for item in self.order.items if item not in self.basket]
        if missing or self.address is None:
            return f"Not yet: {', '.join(missing) or 'the city'} is missing."
        self.shipped = _label(sorted(self.basket), self.address)
        return f"Shipped. {self.shipped}"

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool by its name, as an agent's loop does. What cannot be called is an error told to the model."""
        by_name = {tool.__name__: tool for tool in self.tools}
        if name not in by_name:
            return f"There is no tool {name}."
        try:
            return by_name[name](**arguments)
        except TypeError as error:
            return f"Error: {error}"

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools as names, descriptions and JSON schemas."""
        listed = []
        for tool in self.tools:
            properties = {name: {"type": "string"} for name in _PARAMETERS[tool.__name__]}
            required = [name for name in properties if name != "note"]
            schema = {"type": "object", "properties": properties, "required": required}
            listed.append({"name": tool.__name__, "description": tool.__doc__ or "", "parameters": schema})
        return listed

    @property
    def chat_tools(self) -> list[dict[str, Any]]:
        """The tools as chat completions take them."""
        return [{"type": "function", "function": described} for described in self.schemas]

    @property
    def responses_tools(self) -> list[dict[str, Any]]:
        """The tools as OpenAI's Responses take them."""
        return [{"type": "function", **described, "strict": False} for described in self.schemas]

    @property
    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The tools as Anthropic's Messages take them."""
        return [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in self.schemas
        ]

    @property
    def gemini_tools(self) -> list[dict[str, Any]]:
        """The tools as Gemini takes them."""
        return [{"functionDeclarations": self.schemas}]


_PARAMETERS = {
    "search": ("query",),
    "price": ("item",),
    "add": ("item", "note"),
    "deliver_to": ("city",),
    "ship": (),
}


def _price(item: str) -> int:
    return 5 + 3 * ITEMS.index(item)


def _label(items: "list[str] | tuple[str, ...]", city: str) -> str:
    total = sum([_price(item) for item in items if item in ITEMS])
    return f"Parcel for {city}: {', '.join(items)}; {total} crowns."
