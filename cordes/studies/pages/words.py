"""Verdicts of a study as sentences. Every word of judgement follows from the numbers, whichever way
they fall."""

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
    return [
        *_speed(facts),
        *_beside_the_paper(facts),
        *_auto(facts),
        *_contraction(facts),
        *_conditioning(facts),
    ]


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
    between = (
        f"{number(median)} times the epochs of C-PINN {where} (median; {number(min(finite))} to "
        f"{number(max(finite))}"
    ) + ("" if len(finite) == len(ratios) else ", or never")
    if abs(median - 1) <= EQUAL:
        return f"C-PINN and {rival} are equally fast: {rival} takes {between}); {seeds}."
    agreed = ahead in (0, len(ratios))
    if median > 1:
        return (
            f"C-PINN is faster than {rival}{'' if agreed else ', though not in every seed'}: "
            f"{rival} takes {between}); {seeds}."
        )
    return (
        f"C-PINN is slower than {rival}{'' if agreed else ', though not in every seed'}: {rival} "
        f"takes {between}); {seeds}."
    )


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
        (row["paper"], Summary(row["epochs"]).median)
        for row in facts["milestones"]
        if row["paper"] is not None
    ]
    if not rows:
        return ["The paper has no table for this problem."]
    both = [
        (paper["epochs"], ours)
        for paper, ours in rows
        if paper["epochs"] is not None and ours is not None
    ]
    fewer = sum(ours <= theirs for theirs, ours in both)
    missed = sum(paper["epochs"] is not None and ours is None for paper, ours in rows)
    extra = sum(paper["epochs"] is None and ours is not None for paper, ours in rows)
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
    word = (
        "leaves the conditioning as it is"
        if abs(change) <= EQUAL
        else "improves the conditioning"
        if change > 0
        else "makes the conditioning worse"
    )
    return [
        f"At the end of the run the multiplier {word}: κ₁₀ is {number(without)} without it and "
        f"{number(with_it)} with it."
    ]


def correlation_sentences(found: Mapping[str, Any]) -> list[str]:
    """Does what may explain the speed-up explain it?"""
    said = []
    for which, which_words in (
        ("all", "over all {} problems"),
        ("rest", "over the {} problems without the two widest multipliers"),
    ):
        for key, words in (
            ("variation", "how much γ varies"),
            ("gain", "how much γ improves the conditioning"),
        ):
            value = found[which][key]
            if value is None:
                continue
            verdict = (
                "goes with"
                if value >= CORRELATED
                else "goes against"
                if value <= -CORRELATED
                else "does not follow"
            )
            said.append(
                f"The speed-up {verdict} {words} "
                f"{which_words.format(found[which]['problems'])}: rank correlation "
                f"{number(value)}."
            )
    return said
