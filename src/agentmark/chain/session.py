"""The chain of one session: what its links, and the heads that checkpoints state, show of tampering."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from agentmark.chain.findings import Finding, FindingKind
from agentmark.chain.links import Link, start_digest


@dataclass(slots=True)
class _Segment:
    """Records that follow each other, link by link. `first` is the first one's number in its session, if known."""

    links: list[Link]
    first: int | None
    # Of the links that stand in order: the first and the last place in the log.
    low: int = 0
    high: int = 0

    @property
    def end(self) -> int:
        """The last one's number, or 0 if that is not known."""
        return 0 if self.first is None else self.first + len(self.links) - 1


@dataclass(frozen=True, slots=True)
class _Room:
    """How many records the counts leave room for at a break: at most, or exactly; None if they say nothing."""

    most: int | None
    exact: bool

    @property
    def known(self) -> int | None:
        return self.most if self.exact else None

    def allows(self, by_steps: int) -> bool:
        return by_steps > 0 and (self.most is None or by_steps <= self.most)

    def describe(self, by_steps: int) -> str:
        """How many are missing, and how that is known. Step numbers are what the records say of themselves."""
        if self.known is not None:
            return f"{self.known} by the count of a checkpoint"
        return f"{by_steps} by the step numbers" if self.allows(by_steps) else "how many is not known"


class SessionCheck:
    """The chain of one session, against itself and against the heads that checkpoints state."""

    def __init__(self, session: str, stated: Mapping[str, int], noun: str) -> None:
        self.findings: list[Finding] = []
        self._session = session
        self._stated = stated
        self._noun = noun
        self._start = start_digest(session)
        self._trunk: list[_Segment] = []

    def run(self, links: list[Link]) -> None:
        # (a) Exact copies: a writer never makes two, because each record names the one before it.
        links = self._without_copies(links)
        # (b) Runs of records that follow each other. A second follower of the same record is an insertion.
        segments = self._segments(links)
        # (c) Inside each run the log must keep its order.
        for segment in segments:
            self._check_order(segment)
        # (d) Runs that nothing is missing around were inserted; the others are what is left of the session, in order.
        self._trunk = self._without_insertions(segments)
        # (e) Between those, something is missing or altered.
        rooms = self._rooms()
        self._check_head(rooms)
        for (former, latter), room in zip(pairwise(self._trunk), rooms[1:], strict=True):
            self._check_break(former, latter, room)
        # (f) Every head that a checkpoint states must be here, or in a gap that was found.
        self._check_stated()

    @property
    def checked_count(self) -> int:
        return sum([self._checked(segment) for segment in self._trunk])

    def unvouched(self, last_checkpoint: int) -> list[Finding]:
        """The records of which no checkpoint states a head at or after them.

        A signer states all that it wrote. So a record is not its own that follows the last one stated of its session,
        and yet stands before a checkpoint, whose line is given.
        """
        vouched = max(self._stated.values(), default=0)
        foreign: list[Link] = []
        unchecked: list[Link] = []
        for segment in self._trunk:
            checked = self._checked(segment)
            # Other runs lack what a checkpoint states because something was altered or removed: that has its own kind.
            goes_on = vouched == 0 or (checked > 0 and self._stated[segment.links[checked - 1].digest] == vouched)
            for link in segment.links[checked:]:
                (foreign if goes_on and link.number < last_checkpoint else unchecked).append(link)
        findings = []
        if foreign:
            first = min(foreign, key=lambda link: link.number)
            sentence = f"{len(foreign)} records, the first at {self._place(first)}, stand before a checkpoint, and none"
            sentence += " vouches for them: the signer did not write them, or had lost its state"
            findings.append(self._finding(FindingKind.UNVOUCHED, sentence, first, len(foreign)))
        if unchecked:
            first = min(unchecked, key=lambda link: link.number)
            sentence = f"{len(unchecked)} records, the first at {self._place(first)}, are covered by no checkpoint"
            findings.append(self._finding(FindingKind.UNCHECKED, sentence, first, len(unchecked)))
        return findings

    def _checked(self, segment: _Segment) -> int:
        return max([i for i, link in enumerate(segment.links, start=1) if link.digest in self._stated], default=0)

    def _without_copies(self, links: list[Link]) -> list[Link]:
        first: dict[str, Link] = {}
        for link in links:
            original = first.setdefault(link.digest, link)
            if original is not link:
                self._find(FindingKind.DUPLICATE, f"{self._place(link)} repeats {self._place(original)}", link)
        return list(first.values())

    def _segments(self, links: list[Link]) -> list[_Segment]:
        by_digest = {link.digest: link for link in links}
        followers: dict[str, list[Link]] = defaultdict(list)
        for link in links:
            followers[link.prev].append(link)
        best = self._best_followers(links, by_digest, followers)
        segments = []
        for link in links:
            if best[link.prev] is not link:
                self._report_second(link, best[link.prev])
            elif link.prev not in by_digest:
                run = [link]
                while (follower := best.get(run[-1].digest)) is not None:
                    run.append(follower)
                segments.append(_Segment(run, self._first_number(run)))
        return segments

    def _best_followers(
        self, links: list[Link], by_digest: Mapping[str, Link], followers: Mapping[str, list[Link]]
    ) -> dict[str, Link]:
        """Of several records that follow the same one, the one with the later stated head, then the longer run."""
        order = [link for link in links if link.prev not in by_digest]
        for link in order:  # It grows while it is walked: parents before their followers.
            order += followers.get(link.digest, ())
        ranks: dict[str, tuple[int, int]] = {}
        best: dict[str, Link] = {}
        for link in reversed(order):
            after = best.get(link.digest)
            count, length = (0, 0) if after is None else ranks[after.digest]
            ranks[link.digest] = max(self._stated.get(link.digest, 0), count), length + 1
            rival = best.get(link.prev)
            if rival is None or (*ranks[rival.digest], -rival.number) < (*ranks[link.digest], -link.number):
                best[link.prev] = link
        return best

    def _report_second(self, link: Link, chosen: Link) -> None:
        sentence = f"{self._place(link)} and {self._place(chosen)} both follow the same record: one was inserted"
        self._find(FindingKind.INSERTED, f"{sentence}, or two writers wrote this session at once", link)

    def _first_number(self, run: list[Link]) -> int | None:
        if run[0].prev == self._start:
            return 1
        if run[0].prev in self._stated:
            return self._stated[run[0].prev] + 1
        numbers = [self._stated[link.digest] - i for i, link in enumerate(run) if link.digest in self._stated]
        return numbers[0] if numbers else None

    def _check_order(self, segment: _Segment) -> None:
        kept = _longest_rise([link.number for link in segment.links])
        segment.low, segment.high = segment.links[kept[0]].number, segment.links[kept[-1]].number
        for i in sorted(set(range(len(segment.links))).difference(kept)):
            link, neighbour = segment.links[i], segment.links[i - 1 if i else 1]
            belongs = f"it belongs right {'after' if i else 'before'} {self._place(neighbour)}"
            self._find(FindingKind.REORDERED, f"{self._place(link)} was moved: {belongs}", link)

    def _without_insertions(self, segments: list[_Segment]) -> list[_Segment]:
        head = next((s for s in segments if s.links[0].prev == self._start), None)
        trunk = [] if head is None else [head]
        for segment in sorted(segments, key=lambda segment: segment.low):
            if segment is head:
                continue
            before_head = head is not None and segment.low < head.low
            enclosed = before_head or (trunk and segment.high < trunk[-1].high)
            # What a checkpoint vouches for was written: it may have been moved, but not inserted.
            if enclosed and not self._checked(segment):
                count = len(segment.links)
                sentence = f"{self._place(segment.links[0])} begins {count} that stand where none is missing: inserted"
                self._find(FindingKind.INSERTED, f"{sentence}, or moved here", segment.links[0], count)
            else:
                trunk.append(segment)
        return trunk

    def _rooms(self) -> list[_Room]:
        """How many records can be missing right before each run: what the counts leave between two known numbers."""
        rooms: list[_Room] = []
        known_end, held, waiting = 0, 0, 0
        for segment in self._trunk:
            waiting += 1
            if segment.first is None:
                held += len(segment.links)
                continue
            left = segment.first - 1 - known_end - held
            rooms += [_Room(left, exact=waiting == 1 or left <= 0)] * waiting
            known_end, held, waiting = segment.end, 0, 0
        return rooms + [_Room(None, exact=False)] * waiting

    def _check_head(self, rooms: list[_Room]) -> None:
        if not self._trunk or self._trunk[0].links[0].prev == self._start:
            return
        link, room = self._trunk[0].links[0], rooms[0]
        if room.known == 0:
            sentence = f"{self._place(link)} is the first by the count of a checkpoint, and does not say so: altered"
            self._find(FindingKind.ALTERED, sentence, link)
            return
        many = room.describe(link.step)
        sentence = f"the session's first record is missing, {many}: {self._place(link)} is the first that is left"
        self._find(FindingKind.MISSING_HEAD, sentence, link, room.known)

    def _check_break(self, former: _Segment, latter: _Segment, room: _Room) -> None:
        before, after = former.links[-1], latter.links[0]
        between = f"between {self._place(before)} and {self._place(after)}"
        if latter.low < former.high:
            sentence = f"the records around {self._place(before)} and {self._place(after)} are out of order"
            self._find(FindingKind.REORDERED, sentence, after)
        known, by_steps = room.known, after.step - before.step - 1
        if known == 0 or (known is None and by_steps == 0):
            self._report_altered(before, latter, "step numbers" if known is None else "checkpoints' counts")
        elif known is not None and known < 0:
            moved = former.first is not None and latter.first is not None and latter.first < former.first
            kind = FindingKind.REORDERED if moved else FindingKind.INSERTED
            sentence = f"{-known} records more than a checkpoint counts stand {between} or before"
            self._find(kind, sentence, after, -known)
        elif known is not None or room.allows(by_steps):
            sentence = f"records are missing {between}, {room.describe(by_steps)}"
            self._find(FindingKind.GAP, sentence, after, known)
        else:
            sentence = f"the chain is broken {between}: one of them was altered, or records are missing"
            self._find(FindingKind.BREAK, sentence, after)

    def _report_altered(self, before: Link, latter: _Segment, by: str) -> None:
        after = latter.links[0]
        # A record that another follows, or that a checkpoint states, is as it was: then it is the one before it.
        vouched = len(latter.links) > 1 or after.digest in self._stated
        who = f"{self._place(before)} was" if vouched else f"{self._place(before)} or {self._place(after)} was"
        sentence = f"{who} altered: the one does not follow the other, and by the {by} nothing is missing between them"
        self._find(FindingKind.ALTERED, sentence, before)

    def _check_stated(self) -> None:
        held = {digest for segment in self._trunk for link in segment.links for digest in (link.digest, link.prev)}
        lost = sorted([count for head, count in self._stated.items() if head not in held])
        if not lost:
            return
        numbered = [segment for segment in self._trunk if segment.first is not None]
        by_number = {segment.end - i: link for segment in numbered for i, link in enumerate(reversed(segment.links))}
        replaced = next((count for count in lost if count in by_number), None)
        if replaced is not None:
            link = by_number[replaced]
            sentence = f"{self._place(link)}, number {replaced} of its session, is not what a checkpoint vouches for"
            self._find(FindingKind.ALTERED, f"{sentence}: it, or one before it, was altered", link)
        if all(segment.end < lost[-1] for segment in self._trunk):
            self._report_tail(lost[-1])

    def _report_tail(self, count: int) -> None:
        known_end = held = 0
        for segment in self._trunk:
            known_end, held = (segment.end, 0) if segment.end else (known_end, held + len(segment.links))
        missing = count - known_end - held
        last = self._trunk[-1].links[-1] if self._trunk else None
        if missing > 0:
            sentence = f"a checkpoint counts {count} linked records; at least {missing} are missing at the end"
            self._find(FindingKind.MISSING_TAIL, sentence, last, missing)
        elif last is not None:
            sentence = f"{self._place(last)} is not the last one that a checkpoint vouches for, or one was replaced"
            self._find(FindingKind.ALTERED, sentence, last)

    def _place(self, link: Link) -> str:
        return f"{self._noun} {link.number} (step {link.step})"

    def _find(self, kind: FindingKind, sentence: str, link: Link | None, count: int | None = None) -> None:
        self.findings.append(self._finding(kind, sentence, link, count))

    def _finding(self, kind: FindingKind, sentence: str, link: Link | None, count: int | None) -> Finding:
        step, line = (None, None) if link is None else (link.step, link.number)
        return Finding(kind, sentence, self._session, step, line, count)


def _longest_rise(numbers: list[int]) -> list[int]:
    """Positions of a longest increasing subsequence: the fewest others have to be called moved."""
    if all(a < b for a, b in pairwise(numbers)):
        return list(range(len(numbers)))
    ends: list[int] = []
    end_positions: list[int] = []
    before: list[int | None] = []
    for i, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before.append(end_positions[length - 1] if length else None)
        ends[length : length + 1] = [number]
        end_positions[length : length + 1] = [i]
    rise = []
    position: int | None = end_positions[-1]
    while position is not None:
        rise.append(position)
        position = before[position]
    return rise[::-1]
