"""A thousand random and adversarial attacks on the bounds: benchmarks/certificate_battery.py, in
parts, so that a violation says where it is."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import certificate_battery as battery

CASES, PARTS = 1000, 10


@pytest.mark.parametrize("part", range(PARTS))
def test_every_bound_holds(part):
    results = battery.run(range(part * CASES // PARTS, (part + 1) * CASES // PARTS))
    assert len(results) == CASES // PARTS
    assert battery.violations(results) == []
    # A battery in which hardly anything is bounded would prove nothing.
    assert sum("L2" in found for *_, found in results) >= 0.9 * len(results)
    assert sum("energy" in found for *_, found in results) >= 0.7 * len(results)
    medians = battery.medians(results)
    assert medians["energy"] <= 4
    assert medians["Linf"] <= 20


@pytest.mark.parametrize(
    ("target", "factor"),
    [
        ("cordes.certificates.theorems.energy_bounds.first_eigenvalue", 1.5),
        ("cordes.certificates.theorems.maximum.largest_polar_factor", 0.2),
    ],
)
def test_the_battery_can_fail(monkeypatch, target, factor):
    """Wrong constants are noticed, within a hundred cases."""
    module, name = target.rsplit(".", 1)
    original = getattr(sys.modules[module], name)
    monkeypatch.setattr(target, lambda *arguments: factor * original(*arguments))
    assert any(battery.violations(battery.run([number])) for number in range(100))
