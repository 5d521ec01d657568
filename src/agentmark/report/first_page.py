"""The first page of a report, in plain words: who, how sure, on what, and what it does not prove. One sheet."""

from collections.abc import Sequence
from html import escape
from typing import cast

from agentmark.disclosure.basis import Statement
from agentmark.report.numbers import count_text, rate_in_words
from agentmark.report.outcomes import IMPOSSIBLE, set_aside
from agentmark.report.parts import FoundPart, NamedPart, Report, StrangerReport, StrangerVerdictPart, VerdictPart
from agentmark.report.pieces import NAME_LEN, bullets, facts, paragraph, table, text
from agentmark.report.provenance import InputFile
from agentmark.text import is_or_are
from agentmark.verify.verdict import Standing

# So much of what others may make long fits on one sheet; the details have the rest.
FILES_SHOWN = 3
IDENTITIES_SHOWN = 4
KEYS_SHOWN = 2
PATH_LEN = 72
KEY_ID_LEN = 20
NOTE_LEN, NOTE_LINES = 160, 3

GLOSSARY = (
    (
        "Log, record, step",
        "A log is what an agent wrote down of its decisions. Each record tells of one step: what the agent could have "
        "done, how likely each was, and what it did.",
    ),
    (
        "Mark",
        "A pattern in which actions were chosen, made with the key. A single choice is as likely as without it; many "
        "choices together carry the identity.",
    ),
    ("Key", "A secret number. Whoever has it can make the mark and read it. Its id, shown above, is not secret."),
    (
        "Identity",
        "A number that the holder of the key gave to a customer, an agent or a deployment, and hid in the mark.",
    ),
    (
        "Bound",
        "The most that chance can do: records that others made are taken for an identity's with no greater "
        "probability, whatever the agent did.",
    ),
    ("SHA-256", "A fingerprint of a file. Files that differ in anything have different ones."),
)


PUBLIC_KEY = (
    "Two numbers that belong together. The secret one makes the mark; with the public one anyone can check what its "
    "holder has proved, and can make no mark. Its id, shown above, is not secret."
)


def first_page(report: Report | StrangerReport) -> str:
    """For those who must rely on the report. For strangers, nothing of it tells of single records."""
    whole = None if "view" in report else report
    parts = [
        _heading(report),
        _who(report, whole),
        f"<h2>How sure is that?</h2>{_how_sure(report['verdict'])}",
        _against_whom(whole),
        f"<h2>What was looked at?</h2>{_on_what(report, whole)}",
        f"<h2>What does it not prove?</h2>{bullets(_not_proved(report, whole))}",
        f"<h2>Words used here</h2>{facts(_glossary(whole), css='glossary')}",
    ]
    # On paper, several identities leave less room for the rest.
    css = "first" if whole is None or len(whole["verdict"]["found"]) < 3 else "first dense"
    if whole is not None and whole["rests_on"] is not None and css != "first":
        css += " denser"
    return f'<section class="{css}">{"".join(parts)}</section>'


def _glossary(whole: Report | None) -> Sequence[tuple[str, str]]:
    """In public mode a key has two halves."""
    if whole is None or whole["rests_on"] is None:
        return GLOSSARY
    return [("Key", PUBLIC_KEY) if term == "Key" else (term, meaning) for term, meaning in GLOSSARY]


def note_is_cut(note: str) -> bool:
    """Whether the first page has no room for all of it."""
    return len(note) > NOTE_LEN or len(note.splitlines()) > NOTE_LINES


def _heading(report: Report | StrangerReport) -> str:
    named = [("Made", escape(report["made_at"].replace("T", ", ").replace("Z", " UTC")))]
    if report["case_number"] is not None:
        named.insert(0, ("Case", text(report["case_number"], NAME_LEN)))
    if report["author"] is not None:
        named.append(("Author", text(report["author"], NAME_LEN)))
    if report["note"] is not None:
        named.append(("Note", _note(report["note"])))
    return f"<h1>AgentMark report</h1>{facts(named, css='case')}"


def _note(note: str) -> str:
    if not note_is_cut(note):
        return paragraph(note)
    return f"{paragraph(' '.join(note.split()), NOTE_LEN)} (more at the end)"


# Who ---------------------------------------------------------------------------------------------------------------


def _who(report: Report | StrangerReport, whole: Report | None) -> str:
    verdict = report["verdict"]
    if not verdict["accepted"]:
        css = "no" if whole is None else _NOBODY_CSS.get(whole["verdict"]["standing"], "no")
        return f'<div class="panel verdict {css}">{_nobody(report, whole)}</div>'
    found = verdict["found"]
    if whole is None:
        said = _one(verdict) if len(found) == 1 else _several_named(found)
        return f'<div class="panel verdict yes">{said}</div>'
    said = _one(verdict) if len(found) == 1 else _several(whole["verdict"])
    if len(found) == 1:
        said += f"<p class=small>{_agreement(whole['verdict'])}{_tenant(whole)}</p>"
    return f'<div class="panel verdict yes">{said}{_in_stretches(whole, [each["payload"] for each in found])}</div>'


def _one(verdict: VerdictPart | StrangerVerdictPart) -> str:
    if verdict["payload_len"] == 0:
        return (
            "<p>These records are attributed to <b>the holder of this key</b>.</p>"
            "<p class=small>The mark carries no identity.</p>"
        )
    [found] = verdict["found"]
    name = identity_name(found["identity"], found["payload"], found["text"])
    revoked = f", which was revoked on {text(found['revoked_at'])}" if found["revoked_at"] is not None else ""
    return f"<p>These records are attributed to <b>{name}</b>{revoked}.</p>"


def _tenant(whole: Report) -> str:
    """Whose the public key is, where a registry of such keys says so and only one is asked about."""
    rests_on = whole["rests_on"]
    if rests_on is None or len(whole["keys"]) != 1 or len(rests_on["tenants"]) != 1:
        return ""
    [tenant] = rests_on["tenants"]
    revoked = f", and was revoked on {text(tenant['revoked_at'])}" if tenant["revoked_at"] is not None else ""
    return (
        f" The public key is on record for <b>{text(tenant['name'], NAME_LEN)}</b>, since "
        f"{text(tenant['registered_at'])}{revoked}."
    )


def _several_named(found: Sequence[NamedPart]) -> str:
    names = [
        f"<b>{identity_name(each['identity'], each['payload'], each['text'])}</b>" for each in found[:IDENTITIES_SHOWN]
    ]
    more = len(found) - IDENTITIES_SHOWN
    rest = f"<p class=small>And {more:,} more, listed in the details.</p>" if more > 0 else ""
    return f"<p><b>{len(found):,} identities</b> are found in these records: {', '.join(names)}.</p>{rest}"


def identity_name(identity: str | None, payload: str | None, words: str | None) -> str:
    """By name if there is one, else by number."""
    if identity is not None:
        return text(identity, NAME_LEN)
    as_text = f" (as text: {text(words)})" if words is not None else ""
    return f"identity 0x{escape(payload or '')}{as_text}"


def _agreement(verdict: VerdictPart) -> str:
    used, foreign = verdict["used"], verdict["contradicting"]
    if foreign == 0:
        return f"All {used:,} steps that count agree with it." if used > 1 else "The one step that counts agrees."
    own = _own_steps(verdict)
    others = "at least 1 is not: it contradicts" if foreign == 1 else f"at least {foreign:,} are not: they contradict"
    return (
        f"Of {used:,} steps that count, at least {own:,} {is_or_are(own)} its own, and {others} this identity. Others "
        "that are not its own may agree with it by chance."
    )


def _own_steps(verdict: VerdictPart) -> int:
    return verdict["found"][0]["at_least_steps"] if verdict["found"] else 0


def _several(verdict: VerdictPart) -> str:
    found = verdict["found"]
    more = len(found) - IDENTITIES_SHOWN
    rest = f"And {more:,} more, listed in the details. " if more > 0 else ""
    heads = ("identity", "its own steps", "others look so, at most")
    rows = map(_found_row, found[:IDENTITIES_SHOWN])
    none = f" At least {verdict['unexplained']:,} are of none of them." if verdict["unexplained"] else ""
    return (
        f"<p><b>{len(found):,} identities</b> are found in these records.</p>{table(heads, rows)}"
        f"<p class=small>{rest}Of {count_text(verdict['used'], 'step')} that count. Which of them are whose is not "
        f"known for each: the numbers are the least that is proved.{none}</p>"
    )


def _found_row(found: FoundPart) -> Sequence[str]:
    revoked = f", revoked {text(found['revoked_at'])}" if found["revoked_at"] is not None else ""
    return (
        f"<b>{identity_name(found['identity'], found['payload'], found['text'])}</b>{revoked}",
        f"at least {found['at_least_steps']:,}",
        f"{escape(found['bound_in_words'])} <span class=whole>({escape(found['bound'])})</span>",
    )


def _in_stretches(report: Report | None, named: Sequence[str]) -> str:
    """Who owns a stretch and is not named above: nobody is hidden by a better one."""
    if report is None:
        return ""
    owners = {part["payload"]: part["identity"] for part in report["segments"] if part["payload"] is not None}
    others = [
        f"<b>{identity_name(identity, payload, None)}</b>"
        for payload, identity in owners.items()
        if payload not in named
    ]
    more = len(others) - IDENTITIES_SHOWN
    rest = f" and {more:,} more" if more > 0 else ""
    if not others:
        return ""
    return (
        f"<p class=small>Stretches of the log are also shown to be of {', '.join(others[:IDENTITIES_SHOWN])}{rest}: "
        "see “Stretches of the log”.</p>"
    )


def _nobody(report: Report | StrangerReport, whole: Report | None) -> str:
    claim = report["question"]["claim"]
    asked = "" if claim is None else f"<p class=small>The question was whether they are of {text(claim)}.</p>"
    if whole is None:
        return f"<p>These records are attributed to <b>nobody</b>.</p>{asked}"
    why = _WHY_NOBODY.get(whole["verdict"]["standing"], "")
    steps = whole["verdict"]["steps_needed"]
    if whole["verdict"]["standing"] == Standing.TOO_SHORT and steps:
        why += f" About {count_text(steps, 'more step')} like these would be needed."
    stretches = _in_stretches(whole, [])
    return f"<p>These records are attributed to <b>nobody</b>.</p>{asked}<p class=small>{why}</p>{stretches}"


_NOBODY_CSS: dict[str, str] = {Standing.TOO_SHORT: "maybe", Standing.NOTHING_USABLE: "none"}
_WHY_NOBODY: dict[str, str] = {
    Standing.NOT_ATTRIBUTED: "They were judged, and no identity that was asked about explains them well enough.",
    Standing.TOO_SHORT: "There is too little here to tell whose they are.",
    Standing.NOTHING_USABLE: "No record here can be used: nothing was judged.",
}


# How sure ----------------------------------------------------------------------------------------------------------


def _how_sure(verdict: VerdictPart | StrangerVerdictPart) -> str:
    level = f"{rate_in_words(float(verdict['threshold']))} ({escape(verdict['threshold'])})"
    if not verdict["accepted"]:
        return (
            "<p>Somebody is named only if records of others would look like these with a probability of at most "
            f"{level}. That is not shown here for anybody.</p>"
        )
    caution = (
        "This is <b>not</b> the probability that the finding is wrong. It says how rarely records that somebody else "
        "made would look like these."
    )
    if "bound" not in verdict:
        return (
            "<p>Records made without this key, or with it for another identity, are named so with a probability of at "
            f"most <b>{level}</b>. {caution}</p>"
        )
    whole = cast(VerdictPart, verdict)
    if len(whole["found"]) > 1:
        said = "For each identity, the table above says how rarely records of others look as much like its own."
    else:
        said = (
            "Records made without this key, or with it for another identity, would look like these with a probability "
            f"of at most <b>{escape(whole['bound_in_words'])}</b>; as a number: {escape(whole['bound'])}."
        )
    return f"<p>{said} {caution} Somebody is named only at {level} or less.</p>"


# Against whom ------------------------------------------------------------------------------------------------------


def _against_whom(whole: Report | None) -> str:
    """In public mode: who can check it, and what it rests on."""
    if whole is None or whole["rests_on"] is None:
        return ""
    # A reader who checks needs what the page carries, or the files.
    how = "this file alone" if whole["disclosed"] is not None else "the files"
    return (
        "<h2>Who can check it, and against whom does it hold?</h2>"
        f"<p><b>Anyone can check it, without the secret key,</b> with {how} and the public key: see “How to check it”."
        f"</p>{_AGAINST[whole['rests_on']['statement']]}"
    )


# In plain words; the exact sentence stands in the details.
_AGAINST: dict[str, str] = {
    Statement.STRANGERS: (
        "<p>It holds against everyone without the secret key: other customers of the same provider, and those "
        "who have seen this report. The records must have been as they are now before the holder of the key published "
        "the proofs for them. It shows nothing against that holder, who could have made such records.</p>"
    ),
    Statement.CLAIMED_BY_HOLDER: (
        "<p>The holder of the key claims records that others made. It holds against that holder too, if three things "
        "are true that no file can show: others decided what could be done, how likely it was, what was done and which "
        "key the records name, without the secret key; the public key was on record before the first of these steps; "
        "and nothing was added to the records or taken out since. Whoever relies on it should have evidence of each."
        "</p>"
    ),
}


# On what -----------------------------------------------------------------------------------------------------------


def _on_what(report: Report | StrangerReport, whole: Report | None) -> str:
    files = report["inputs"]
    more = len(files) - FILES_SHOWN
    rest = f"<p class=small>And {count_text(more, 'more file')}, listed at the end.</p>" if more > 0 else ""
    listed = f"<ul class=files>{''.join(map(_file, files[:FILES_SHOWN]))}</ul>" if files else ""
    check = "<p class=small>How to check files and signature: see “How to check it”, after this page.</p>"
    return f"{listed}{rest}<p>{_records(report, whole)}</p>{check}"


def _file(file: InputFile) -> str:
    name = f"{escape(file['kind'])} <b>{text(file['path'], PATH_LEN)}</b>"
    if file["sha256"] is None or file["size"] is None:
        return f"<li>{name}: a pipe, of which nothing is left to compare"
    return f"<li>{name}<br>SHA-256 <code>{escape(file['sha256'])}</code>, {count_text(file['size'], 'byte')}"


def _records(report: Report | StrangerReport, whole: Report | None) -> str:
    said = []
    if whole is not None:
        verdict = whole["verdict"]
        count = "is" if verdict["used"] == 1 else "are"
        said.append(f"{count_text(verdict['records'], 'record')} read, of which {verdict['used']:,} {count} evidence.")
    keys = [f"<code>{text(key, KEY_ID_LEN)}</code>" for key in report["keys"][:KEYS_SHOWN]]
    if len(report["keys"]) > KEYS_SHOWN:
        keys.append("others")
    if keys:
        said.append(f"Read with the key of id {', '.join(keys)}.")
    passed_over = len(report["passed_over"])
    if passed_over:
        were = "was" if passed_over == 1 else "were"
        said.append(f"{count_text(passed_over, 'place')} could not be read and {were} passed over: see the details.")
    return " ".join(said)


# What it does not prove --------------------------------------------------------------------------------------------


def _not_proved(report: Report | StrangerReport, whole: Report | None) -> list[str]:
    verdict = report["verdict"]
    said = [
        "Whoever has the secret key can write records that carry any identity. The finding is worth as much as the key "
        "was kept secret."
        if verdict["accepted"]
        else "That nobody is named does not show that the records are not of an identity of this key: steps may be "
        "missing, altered, or taken without the mark.",
        "It is about <b>choices</b>: which action was taken at which step. It says nothing of the wording of a text, "
        "nor of whether what was done is right.",
        "It says nothing of records that are not here.",
    ]
    if any(found["identity"] is not None for found in verdict["found"]):
        said.append("Which number in the mark belongs to which name is written in the key holder's registry.")
    if whole is not None and verdict["accepted"] and whole["verdict"]["unexplained"]:
        said.append("Steps of others, who are not named here, may be among the records.")
    if whole is not None:
        said += _gaps(whole)
    return said


def _gaps(report: Report) -> list[str]:
    """What in the log does not count, or speaks against the finding."""
    verdict = report["verdict"]
    said = [escape(aside)] if (aside := set_aside(verdict)) else []
    if verdict["outcomes"].get(IMPOSSIBLE) and verdict["accepted"]:
        said.append("Records that are impossible under this key are not of whoever is named.")
    if report["findings"]:
        said.append(
            f"{count_text(len(report['findings']), 'sign')} of tampering, damage or mixing, listed in the details."
        )
    if verdict["work_note"] is not None:
        said.append("The search was cut short by its limit: see “With this key”.")
    return said
