"""The desk over which every decision goes: runs, mark, log and counts. What is decided, and how, is said above it."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from agentmark.core.distribution import Rational
from agentmark.core.errors import DistributionError
from agentmark.decide.decision import Decision, Run
from agentmark.decide.forcing import Refusals
from agentmark.decide.runs import Runs
from agentmark.decide.stats import Ledger, Stats
from agentmark.decide.writing import LateRecordError, Writing
from agentmark.elicit.errors import ElicitationError
from agentmark.elicit.proposals import METHOD, Proposals, grouped
from agentmark.elicit.situation import OTHER, Elicitation, Elicitor, Proposal, one_line
from agentmark.embed.embedder import Embedder
from agentmark.embed.session import Session
from agentmark.errors import SettingError
from agentmark.log.jsonl import LogWriter
from agentmark.log.sink import Sink
from agentmark.record import StepRecord


class Desk:
    """Makes choices with the mark, writes their records, and counts what became of them. Thread-safe."""

    def __init__(
        self,
        marker: Embedder | Session,
        elicitor: Elicitor | Proposals,
        log: Sink | str | Path | None,
        *,
        fallback: Proposals | None,
        fail: Literal["open", "closed"],
        meta: Mapping[str, Any] | None,
        patience_s: float,
        ledger: Ledger | None = None,
    ) -> None:
        if patience_s <= 0:
            raise SettingError("patience_s", f"{patience_s} is not above zero")
        if fail not in ("open", "closed"):
            raise SettingError("fail", f"{fail!r} is neither 'open' nor 'closed'")
        session = marker.session() if isinstance(marker, Embedder) else marker
        self.runs = Runs(session, marker.session if isinstance(marker, Embedder) else session.another)
        self.elicitor = elicitor
        self.fallback = elicitor if isinstance(elicitor, Proposals) else fallback
        self.fail = fail
        self.refusals = Refusals()
        self.ledger = Ledger() if ledger is None else ledger
        self._owns_log = isinstance(log, str | Path)
        self.log: Sink | None = LogWriter(log) if isinstance(log, str | Path) else log
        self._writing = None if self.log is None else Writing(self.log, lost=self._lost, patience_s=patience_s)
        self._meta = dict(meta or {})

    @property
    def stats(self) -> Stats:
        """Marked, unmarked by reason, disobeyed, tokens, seconds: since the start."""
        return self.ledger.stats()

    def run(self, run_id: str | None) -> Run:
        run, forgotten = self.runs.get(run_id)
        if forgotten is not None:
            for record in self.void_failed(forgotten):
                self.write(record)
        return run

    def choose(
        self,
        run: Run,
        names: Iterable[str],
        elicitation: Elicitation,
        *,
        context: Mapping[str, object] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Choose from what an elicitor said, with the mark. Writes nothing: the record is in the decision."""
        names = tuple(names)
        said = {**self._meta, **run.meta, **(meta or {})}
        context = {**(run.context or {}), **(context or {})} or None
        groups: Mapping[str, Sequence[Proposal]] = {}
        if elicitation.proposals is not None:
            elicitation, groups = _listed(elicitation, names, run.session)
        if elicitation.weights is not None:
            try:
                if elicitation.proposals is None:
                    _check_names(elicitation.weights, names)
                choice = run.session.choose(
                    elicitation.weights, context=context, meta={**said, **elicitation.as_meta()}
                )
            except DistributionError as error:
                # The field may quote what the model said; the fault is ours.
                logged = f"a list that cannot be used: {error.fault}"
                elicitation = replace(elicitation, weights=None, fault=str(error), logged_fault=logged)
            else:
                self.ledger.decided(choice.record, elicitation.model)
                # Of those that do what was chosen, one drawn uniformly.
                group = groups.get(choice.behavior)
                reply = None if not group else group[0].reply if len(group) == 1 else secrets.choice(group).reply
                return Decision(choice.behavior, elicitation, choice.record, run, names, reply, said)
        return Decision(None, elicitation, None, run, names, meta=said)

    def leave(self, decision: Decision) -> Decision:
        """Leave a decision to the agent, and say so; with fail `closed`, refuse to."""
        said = decision.elicitation
        if self.fail == "closed":
            raise ElicitationError(said.method, said.fault or "no list", logged=said.logged_fault)
        self.ledger.unmarked(_reason(said), said.model, said.fault)
        return decision

    def outcome(self, decision: Decision, behavior: str | None) -> StepRecord | None:
        """What has to be logged of what the agent really did (None: nothing that counts), if anything."""
        if decision.record is None:
            if behavior is None:
                return None
            said = decision.elicitation
            meta = {**decision.meta, **said.as_meta()}
            did = _known(behavior, decision)
            run = decision.run
            return run.session.unmarked(did, reason=_reason(said), context=run.context, meta=meta).record
        if behavior == decision.behavior:
            return None
        if behavior is None:
            self.ledger.unfinished(decision.elicitation.model)
        else:
            self.ledger.disobeyed(str(decision.behavior), decision.elicitation.model)
        return _not_enforced(decision, {} if behavior is None else {"did": _known(behavior, decision)})

    def edit(self, decision: Decision, behavior: str) -> StepRecord:
        """What has to be logged when somebody changed what the agent did after the model's reply."""
        self.ledger.edited(decision.elicitation.model)
        return _not_enforced(decision, {"did": behavior, "edited": True})

    def void_failed(self, run: Run, *, but: bytes | None = None) -> list[StepRecord]:
        """Forget decisions whose call failed and which nobody tried again; what takes them out of the evidence."""
        records = []
        for decision in run.memory.forget_failed(but=but):
            if decision.record is not None:
                self.ledger.unfinished(decision.elicitation.model)
                records.append(_not_enforced(decision, {}))
        return records

    def write(self, record: StepRecord | None) -> None:
        """Log a record. A sink that fails or hangs does not break the agent (law L11): the loss is counted, unless
        fail is `closed`."""
        if self._writing is not None and record is not None:
            try:
                self._writing.write(record)
            except Exception as error:
                self._not_written(record, error)

    async def awrite(self, record: StepRecord | None) -> None:
        """The same, without holding up the event loop: a disk may be slow."""
        if self._writing is not None and record is not None:
            try:
                await self._writing.awrite(record)
            except Exception as error:
                self._not_written(record, error)

    def _not_written(self, record: StepRecord, error: Exception) -> None:
        if self.fail == "closed":
            raise error
        if isinstance(error, LateRecordError):
            self.ledger.late(_model(record))
        else:
            self._lost(record, error)

    def _lost(self, record: StepRecord, error: BaseException) -> None:
        self.ledger.unrecorded(error, _model(record))

    def close(self) -> None:
        """Void what was left open, close the log if it was opened here, and sum up what became of the steps."""
        for run in self.runs.open():
            for record in self.void_failed(run):
                self.write(record)
        if self._writing is not None:
            self._writing.close()
        if self._owns_log and isinstance(self.log, LogWriter):
            self.log.close()
        self.ledger.closed()


def _listed(
    elicitation: Elicitation, names: tuple[str, ...], session: Session
) -> tuple[Elicitation, dict[str, list[Proposal]]]:
    """The counts of the proposals as the list; and for each behavior the replies that do it."""
    digest = session.argument_digest if elicitation.granularity == "call" else None
    groups = grouped(elicitation.proposals or (), names, digest)
    weights = {behavior: len(group) for behavior, group in groups.items()}
    return replace(elicitation, weights=weights or None), groups


def _check_names(weights: Mapping[str, Rational], names: tuple[str, ...]) -> None:
    """An elicitor must speak of the candidates, all of them and no others (law L6)."""
    for name in weights:
        if name not in names:
            raise DistributionError(f"weights[{name!r}]", "is no candidate")
    for name in names:
        if name not in weights:
            raise DistributionError(f"weights[{name!r}]", "is missing")


def _reason(said: Elicitation) -> str:
    """Why a step is unmarked, for its record."""
    fault = said.logged_fault or said.fault or "no list"
    return one_line(f"not sampled: {fault}" if said.method == METHOD else f"elicitation failed: {fault}")


def _model(record: StepRecord) -> str:
    """The model that a record speaks of, for the counts."""
    return str((record.meta or {}).get("model", "none"))


def _known(behavior: str, decision: Decision) -> str:
    """What was done, by name. A name that was not on offer is the model's own text, and stays out of the log."""
    return behavior if behavior in (*decision.names, decision.behavior) else OTHER


def _not_enforced(decision: Decision, done: Mapping[str, Any]) -> StepRecord:
    """The step again, taken out of the evidence."""
    if decision.record is None:
        raise ValueError("a decision without a record has nothing to take back")
    return replace(decision.record.with_enforced(False), meta={**(decision.record.meta or {}), **done})
