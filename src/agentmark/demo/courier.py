"""A small world with consequences: a courier robot with a battery, two parcels and a deadline.

Every decision costs time and most cost charge. A robot that runs empty away from the depot is stranded; one that is
late has failed. The agent plans, but not perfectly: it prefers good moves and sometimes takes others.
"""

import random
from collections import deque
from dataclasses import dataclass
from math import exp
from typing import NamedTuple

from agentmark.core.distribution import BehaviorDistribution
from agentmark.policies.chooser import Chooser
from agentmark.record import StepRecord

Cell = tuple[int, int]

WAITING, CARRIED, DELIVERED = range(3)
HEADINGS = {"go north": (0, -1), "go south": (0, 1), "go east": (1, 0), "go west": (-1, 0)}
PARCEL_NAMES = ("A", "B")


@dataclass(frozen=True, slots=True)
class Town:
    """One task: the map, where each parcel lies and where it goes."""

    size: int
    walls: frozenset[Cell]
    depot: Cell
    pickups: tuple[Cell, ...]
    addresses: tuple[Cell, ...]
    battery: int

    @classmethod
    def random(cls, rng: random.Random, *, size: int = 6, wall_count: int = 6, battery: int = 15) -> "Town":
        """Any town: whether its errands can be done, only a plan tells."""
        cells = [(x, y) for x in range(size) for y in range(size)]
        walls = frozenset(rng.sample(cells, wall_count))
        free = [cell for cell in cells if cell not in walls]
        depot, *stops = rng.sample(free, 1 + 2 * len(PARCEL_NAMES))
        return cls(size, walls, depot, tuple(stops[::2]), tuple(stops[1::2]), battery)

    @property
    def start(self) -> "State":
        return State(self.depot, self.battery, (WAITING,) * len(PARCEL_NAMES))


class State(NamedTuple):
    """Where the robot is, its charge, and what became of each parcel. A tuple, since planning hashes many."""

    cell: Cell
    charge: int
    parcels: tuple[int, ...]

    @property
    def done(self) -> bool:
        return all(status == DELIVERED for status in self.parcels)


def options(town: Town, state: State) -> dict[str, State]:
    """The behaviors that are possible now, and where each leads. Empty when the robot is stranded."""
    moves: dict[str, State] = {}
    if state.charge > 0:
        for name, (dx, dy) in HEADINGS.items():
            cell = (state.cell[0] + dx, state.cell[1] + dy)
            inside = 0 <= cell[0] < town.size and 0 <= cell[1] < town.size
            if inside and cell not in town.walls:
                moves[name] = State(cell, state.charge - 1, state.parcels)
    for i, name in enumerate(PARCEL_NAMES):
        if state.parcels[i] == WAITING and state.cell == town.pickups[i]:
            moves[f"pick up {name}"] = _with_parcel(state, i, CARRIED)
        if state.parcels[i] == CARRIED and state.cell == town.addresses[i]:
            moves[f"drop off {name}"] = _with_parcel(state, i, DELIVERED)
    if state.cell == town.depot:
        moves["recharge"] = State(state.cell, town.battery, state.parcels)
    if moves:
        moves["wait"] = state
    return moves


def _with_parcel(state: State, index: int, status: int) -> State:
    parcels = (*state.parcels[:index], status, *state.parcels[index + 1 :])
    return State(state.cell, state.charge, parcels)


class Planner:
    """Exact cost to go of every state that can still succeed, by breadth-first search back from success."""

    def __init__(self, town: Town, *, temperature: float) -> None:
        self.town = town
        self._temperature = temperature
        self._outlooks: dict[State, Outlook] = {}
        leads_here: dict[State, list[State]] = {town.start: []}
        frontier = deque([town.start])
        while frontier:
            state = frontier.popleft()
            if state.done:
                continue
            for following in options(town, state).values():
                if following not in leads_here:
                    leads_here[following] = []
                    frontier.append(following)
                leads_here[following].append(state)
        self.cost_to_go = {state: 0 for state in leads_here if state.done}
        frontier = deque(self.cost_to_go)
        while frontier:
            state = frontier.popleft()
            for before in leads_here[state]:
                if before not in self.cost_to_go:
                    self.cost_to_go[before] = self.cost_to_go[state] + 1
                    frontier.append(before)

    @classmethod
    def random(cls, rng: random.Random, *, temperature: float) -> "Planner":
        """A plan for a random town in which every errand can be done."""
        while True:
            planner = cls(Town.random(rng), temperature=temperature)
            if planner.town.start in planner.cost_to_go:
                return planner

    def outlook(self, state: State) -> "Outlook":
        """What can be done here. Worked out once: many deliveries in one town pass through the same states."""
        found = self._outlooks.get(state)
        if found is None:
            moves = options(self.town, state)
            weights = BehaviorDistribution.quantise(self._preferences(moves)).as_weights() if moves else {}
            found = self._outlooks[state] = Outlook(moves, weights)
        return found

    def _preferences(self, moves: dict[str, State], *, worst: int = 6) -> dict[str, float]:
        """P_t before quantisation: a softmax over how much longer each option takes than the best one."""
        costs = {name: self.cost_to_go.get(following) for name, following in moves.items()}
        known = [cost for cost in costs.values() if cost is not None]
        best = min(known, default=0)
        # A hopeless option is not impossible: the agent misjudges it like any other bad one.
        regrets = {name: worst if cost is None else min(cost - best, worst) for name, cost in costs.items()}
        return {name: exp(-regret / self._temperature) for name, regret in regrets.items()}


@dataclass(frozen=True, slots=True)
class Outlook:
    """Where each option leads, and how likely the robot is to take it, as the integers that a record holds."""

    moves: dict[str, State]
    weights: dict[str, int]


@dataclass(frozen=True, slots=True)
class Episode:
    """How one task went."""

    success: bool
    records: tuple[StepRecord, ...]

    @property
    def steps(self) -> int:
        return len(self.records)


def run_episode(planner: Planner, chooser: Chooser, *, slack: float) -> Episode:
    """Decide until the parcels are delivered, the robot is stranded, or the deadline has passed."""
    state = planner.town.start
    deadline = int(slack * planner.cost_to_go[state])
    records: list[StepRecord] = []
    while not state.done and len(records) < deadline:
        outlook = planner.outlook(state)
        if not outlook.moves:
            break
        choice = chooser.choose(outlook.weights)
        records.append(choice.record)
        state = outlook.moves[choice.behavior]
    return Episode(state.done, tuple(records))
