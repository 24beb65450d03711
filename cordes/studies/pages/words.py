"""Verdicts of a study as sentences. Every word of judgement follows from the numbers, whichever way
they fall."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from cordes.reports.kit.page import number, text
from cordes.studies.time_to_accuracy import Summary

# A median that differs by less than this share is called equal: seeds alone move it by more.
EQUAL = 0.1
# A rank correlation from here on is called one.
CORRELATED = 0.6


def verdicts(facts: Mapping[str, Any]) -> list[str]:
    """Safe HTML, the most important sentence first."""
    parts = (_speed, _beside_the_paper, _auto, _contraction, _conditioning)
    return [sentence for part in parts for sentence in part(facts)]


def _speed(facts: Mapping[str, Any]) -> list[str]:
    found = [speed_sentence(ratio) for ratio in facts["speed_up"]]
    return found or [
        "No target was met by half of the seeds of both methods within "
        f"{number(facts['epochs'])} epochs: nothing can be said about their speed."
    ]


def speed_sentence(ratio: Mapping[str, Any]) -> str:
    """Who took fewer epochs, by how much, and whether the seeds agree. A rival that never arrives
    has no ratio (None), C-PINN that never does has 0."""
    rival, ratios = text(ratio["rival"]), ratio["ratios"]
    ahead = sum(one is None or one > 1 for one in ratios)
    where = f"to an l2 error of {number(ratio['target'], 1)}"
    seeds = f"C-PINN is ahead in {ahead} of {len(ratios)} seeds"
    median = ratio["median"]
    if median is None:
        return f"C-PINN is faster: most seeds of {rival} never come {where}; {seeds}."
    finite = [one for one in ratios if one is not None]
    never = "" if len(finite) == len(ratios) else ", or never"
    between = f"median; {number(min(finite))} to {number(max(finite))}{never}"
    takes = (
        f"{rival} takes {number(median)} times the epochs of C-PINN {where} ({between}); {seeds}"
    )
    if abs(median - 1) <= EQUAL:
        return f"C-PINN and {rival} are equally fast: {takes}."
    faster = "faster" if median > 1 else "slower"
    agreed = "" if ahead in (0, len(ratios)) else ", though not in every seed"
    return f"C-PINN is {faster} than {rival}{agreed}: {takes}."


def overall_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """All problems in one sentence, against plain PINN."""
    medians = [row["median"] for row in rows if row["rival"] == "PINN"]
    faster = sum(median is None or median > 1 + EQUAL for median in medians)
    slower = sum(median is not None and median < 1 - EQUAL for median in medians)
    equal = len(medians) - faster - slower
    return (
        f"C-PINN takes fewer epochs than PINN on {faster} of {len(medians)} problems, as many on "
        f"{equal} (within 10 %) and more on {slower}."
    )


def _beside_the_paper(facts: Mapping[str, Any]) -> list[str]:
    """Our medians beside the paper's single runs."""
    rows = [
        (row["paper"]["epochs"], Summary(row["epochs"]).median)
        for row in facts["milestones"]
        if row["paper"] is not None
    ]
    if not rows:
        return ["The paper has no table for this problem."]
    both = [row for row in rows if None not in row]
    fewer = sum(ours <= theirs for theirs, ours in both)
    missed = sum(theirs is not None and ours is None for theirs, ours in rows)
    extra = sum(theirs is None and ours is not None for theirs, ours in rows)
    said = (
        f"Of {len(rows)} rows of the paper's table our median takes no more epochs in {fewer} and "
        f"more in {len(both) - fewer}"
    )
    said += f"; {missed} that the paper meets our median does not" if missed else ""
    said += f"; {extra} that the paper does not meet our median does" if extra else ""
    return [said + "."]


def _auto(facts: Mapping[str, Any]) -> list[str]:
    auto = facts["auto"]
    if auto["l2"] is None:
        return []
    paper = auto.get("paper")
    beside = (
        f" The paper's tightest row is {number(paper['l2'])} after {number(paper['epochs'])} "
        "epochs."
        if paper
        else ""
    )
    took = (
        f"in {number(auto['solve_s'])} seconds, the time of {number(auto['epochs_equivalent'])} "
        "plain epochs on the same machine"
    )
    return [
        "Without any of this training, <code>auto</code> reaches an l2 error of "
        f"{number(auto['l2'])} {took}.{beside}"
    ]


def _contraction(facts: Mapping[str, Any]) -> list[str]:
    found = [
        one for one in facts["contraction"].values() if one["records"] and one["bound"] is not None
    ]
    if not found:
        return []
    above, records = sum(one["exceeded"] for one in found), sum(one["records"] for one in found)
    bound = max(found, key=lambda one: one["bound"])["bound"]
    if above == 0:
        return [
            f"The contraction that the theorem promises held in all {records} records: never "
            f"above √(1 − ε) = {number(bound)}."
        ]
    return [
        f"The contraction was above the theorem's √(1 − ε) = {number(bound)} in {above} of "
        f"{records} records."
    ]


def _conditioning(facts: Mapping[str, Any]) -> list[str]:
    end = facts["conditioning"]["end"]
    without, with_it = (end[name]["kappa_10"] for name in ("PINN", "C-PINN"))
    if without is None or with_it is None:
        return []
    change = without / with_it - 1
    word = "improves the conditioning" if change > 0 else "makes the conditioning worse"
    word = "leaves the conditioning as it is" if abs(change) <= EQUAL else word
    return [
        f"At the end of the run the multiplier {word}: κ₁₀ is {number(without)} without it and "
        f"{number(with_it)} with it."
    ]


def correlation_sentences(found: Mapping[str, Any]) -> list[str]:
    """Does what may explain the speed-up explain it?"""
    problems = {
        "all": "over all {} problems",
        "rest": "over the {} problems without the two widest multipliers",
    }
    causes = {"variation": "how much γ varies", "gain": "how much γ improves the conditioning"}
    said = []
    for which, key in itertools.product(problems, causes):
        value = found[which][key]
        if value is not None:
            verdict = "goes with" if value > 0 else "goes against"
            verdict = verdict if abs(value) >= CORRELATED else "does not follow"
            where = problems[which].format(found[which]["problems"])
            told = f"The speed-up {verdict} {causes[key]} {where}"
            said.append(f"{told}: rank correlation {number(value)}.")
    return said
