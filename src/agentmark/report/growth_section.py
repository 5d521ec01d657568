"""How the evidence grows with the records, and how the identity becomes determined: two charts."""

from html import escape

from agentmark.report.charts import Series, line_chart
from agentmark.report.numbers import count_text
from agentmark.report.parts import Report, VerdictPart
from agentmark.verify.candidates import Route


def evidence_chart(report: Report) -> str:
    growth, verdict = report["growth"], report["verdict"]
    if verdict["used"] == 0:
        return ""
    points = []
    for record, surplus in growth["points"]:
        if surplus is None:
            break
        points.append((float(record), float(surplus)))
    stopped = len(points) < len(growth["points"])
    last = growth["points"][-1][0]
    of_candidate = growth["of"] == "candidate"
    several = len(verdict["found"]) > 1
    whose = f"the surplus of payload 0x{verdict['found'][0]['payload']}" if several else "the candidate's surplus"
    label = whose if of_candidate else "what the steps could say if all agreed, less the price"
    css = ("r" if verdict["accepted"] else "bad") if of_candidate else "c5 dash"
    paid = float(verdict["bits_paid"])
    level = float(verdict["level_bits"]) - paid
    chart = line_chart(
        [Series(label, points, css, ends_with_cross=stopped)],
        x_label="records read, in the order of the log",
        y_label="surplus (bits)",
        threshold=(level, f"{level:.1f} bits needed"),
        x_max=float(last),
    )
    price = f", less {paid:.1f} bits for what was tried" if paid else ""
    meaning = _growth_of_candidate(verdict) if of_candidate else "Nobody was a candidate: this is no evidence yet."
    ruled_out = " At ✕ a step rules the candidate out." if stopped else ""
    return (
        f"<h2>How the evidence grows</h2><figure class=panel>{chart}</figure>"
        f"<p class=soft>log2 of the e-value after each record, in bits{price}. The dashed line is what a bound of "
        f"{escape(verdict['threshold'])} takes. {meaning}{ruled_out}</p>"
    )


def _growth_of_candidate(verdict: VerdictPart) -> str:
    """What is proved of the line. It says nothing of evidence without its price: that grows by the choice alone."""
    if verdict["route"] == Route.CLAIM:
        return "If the claim is false, this line ever reaches a height of b bits with probability at most 2^-b."
    return (
        "The candidate was picked by looking at the whole log, and the price covers that: the probability that the "
        "line of any wrong identity ever reaches a height of b bits is at most 2^-b."
    )


def rank_chart(report: Report) -> str:
    growth, verdict = report["rank_growth"], report["verdict"]
    if growth is None:
        return ""
    points = [(float(record), float(rank)) for record, rank in growth["points"]]
    chart = line_chart(
        [Series("independent equations (rank)", points, "f")],
        x_label="records read, in the order of the log",
        y_label="rank",
        threshold=(verdict["payload_len"], f"{verdict['payload_len']} payload bits"),
    )
    return (
        "<h2>How the identity becomes determined</h2>"
        f"<figure class=panel>{chart}</figure>"
        f"<p class=soft>Scheme F: {count_text(growth['equations'], 'equation')}. At full rank one identity is left at "
        "most; every equation after that confirms or refutes it.</p>"
    )
