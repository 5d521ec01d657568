"""An expert for ALFWorld that searches: it knows what it has seen and what can be kept where, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

# Predicate, then its arguments, as the game's own problem file has them.
Facts = Mapping[str, set[tuple[str, ...]]]

LOOK, PLACE, CLEAN, COOL, HEAT, TWO = "A1", "A2", "A3", "A4", "A5", "A6"

# Where the state of an object is changed, the command that does it, and the fact that says it is done.
TREATMENTS = {
    CLEAN: (("sinkbasintype", "sinktype"), "clean", "isclean"),
    COOL: (("fridgetype",), "cool", "iscool"),
    HEAT: (("microwavetype",), "heat", "ishot"),
}


@dataclass(frozen=True, slots=True)
class Goal:
    """What kind of task it is, and the types that its sentence names."""

    group: str
    object_type: str
    receptacle_type: str
    lamp_type: str


class Searcher:
    """Advises on the next command. It looks into what needs no opening first, then opens, each in an order of its own;
    it finds its way back from anywhere, since it goes by the state of the house and not by a script."""

    def __init__(self, goal: Goal, facts: Facts, names: Mapping[str, str], rng: Random) -> None:
        self._goal = goal
        self._names = names
        self._place_of = dict(_pairs(facts, "receptacleatlocation"))
        self._type_of = dict(_pairs(facts, "objecttype")) | dict(_pairs(facts, "receptacletype"))
        self._can_contain = set(_pairs(facts, "cancontain"))
        self._openable = {receptacle for (receptacle,) in facts.get("openable", set())}
        self._order = sorted(self._place_of)
        rng.shuffle(self._order)
        self._seen: set[str] = set()
        self.look(facts)

    def look(self, facts: Facts) -> None:
        """Take note of what can be seen from where the agent stands. To be called after every step."""
        self._facts = facts
        self._here = next(iter(facts["atlocation"]))[1]
        self._opened = {receptacle for (receptacle,) in facts.get("opened", set())}
        self._seen |= {r for r, place in self._place_of.items() if place == self._here and not self._closed(r)}
        # Objects that cannot be picked up or used are of no interest, and neither is what has not been seen yet.
        self._where = {o: r for o, r in _pairs(facts, "inreceptacle") if r in self._seen}
        self._held = next((held for _, held in _pairs(facts, "holds")), None)

    def advise(self) -> str | None:
        goal = self._goal
        if self._held is None:
            return self._fetch()
        if self._type_of.get(self._held) != goal.object_type:
            return self._put_away(self._held)
        if goal.group == LOOK:
            return self._light()
        if goal.group in TREATMENTS and not self._treated(self._held):
            station_types, verb, _ = TREATMENTS[goal.group]
            station = self._nearest([r for r in self._order if self._type_of[r] in station_types])
            if station is None:
                return None
            return self._at(station, f"{verb} {self._names[self._held]} with {self._names[station]}")
        target = self._target()
        return None if target is None else self._put(self._held, target)

    def _fetch(self) -> str | None:
        """Take an object of the right type, or look for one."""
        goal = self._goal
        target = self._target() if goal.group == TWO else None
        wanted = [
            o for o in sorted(self._where) if self._type_of.get(o) == goal.object_type and self._where[o] != target
        ]
        # One that is treated already comes first, then one within reach.
        wanted.sort(key=lambda o: (not self._treated(o), self._place_of[self._where[o]] != self._here))
        if not wanted:
            return self._search(goal.object_type)
        found = wanted[0]
        receptacle = self._where[found]
        return self._in(receptacle, f"take {self._names[found]} from {self._names[receptacle]}")

    def _light(self) -> str | None:
        lamps = [o for o in sorted(self._where) if self._type_of.get(o) == self._goal.lamp_type]
        lamps.sort(key=lambda o: self._place_of[self._where[o]] != self._here)
        if not lamps:
            return self._search(self._goal.lamp_type)
        return self._at(self._where[lamps[0]], f"use {self._names[lamps[0]]}")

    def _target(self) -> str | None:
        """Where the task wants it: two objects belong into the same receptacle."""
        targets = [r for r in self._order if self._type_of[r] == self._goal.receptacle_type]
        if self._goal.group != TWO:
            return self._nearest(targets)
        kept = [r for o, r in self._where.items() if self._type_of.get(o) == self._goal.object_type]
        return max(targets, key=kept.count, default=None)

    def _put_away(self, held: str) -> str | None:
        """Get rid of what is of no use, at once if it can be. Some things fit nowhere in their house, and whoever has
        picked one up never has a free hand again: the game is lost."""
        fitting = [r for r in self._order if (self._type_of[r], self._type_of.get(held, "")) in self._can_contain]
        fitting.sort(key=lambda r: (self._place_of[r] != self._here, self._closed(r)))
        return self._put(held, fitting[0]) if fitting else None

    def _search(self, object_type: str) -> str | None:
        """On to what has not been looked into: first where such an object can be, and what needs no opening."""
        unseen = [r for r in self._order if r not in self._seen]
        unseen.sort(key=lambda r: ((self._type_of[r], object_type) not in self._can_contain, r in self._openable))
        return self._in(unseen[0], "look") if unseen else None

    def _put(self, held: str, receptacle: str) -> str:
        return self._in(receptacle, f"move {self._names[held]} to {self._names[receptacle]}")

    def _in(self, receptacle: str, command: str) -> str:
        """The command, once the agent stands before the receptacle and it is open."""
        return self._at(receptacle, f"open {self._names[receptacle]}" if self._closed(receptacle) else command)

    def _at(self, receptacle: str, command: str) -> str:
        return command if self._place_of[receptacle] == self._here else f"go to {self._names[receptacle]}"

    def _nearest(self, receptacles: Iterable[str]) -> str | None:
        """One within reach, else the first: everything else is equally far."""
        return min(receptacles, key=lambda r: self._place_of[r] != self._here, default=None)

    def _closed(self, receptacle: str) -> bool:
        return receptacle in self._openable and receptacle not in self._opened

    def _treated(self, thing: str) -> bool:
        if self._goal.group not in TREATMENTS:
            return False
        return (thing,) in self._facts.get(TREATMENTS[self._goal.group][2], set())


def _pairs(facts: Facts, predicate: str) -> list[tuple[str, str]]:
    return [(first, second) for first, second in sorted(facts.get(predicate, set()))]
