"""The two tiers: what is chosen, that the quick one fits its four minutes as far as the record
knows, and that it has every room in it."""

from types import SimpleNamespace

import durations
import inventory
import pytest

ROOMS = {path.name for path in durations.TESTS.iterdir() if list(path.glob("test_*.py"))}


@pytest.fixture
def quick(request):
    """The quick part of what was collected."""
    items = request.session.items
    part = durations.parts(items)
    return [item for item in items if durations.is_quick(item, part[item.nodeid])]


def test_the_quick_tier_fits_its_budget(quick):
    assert sum(durations.parts(quick).values()) <= durations.BUDGET


def test_the_quick_tier_has_every_room_in_it(quick, request):
    if request.config.args not in ([str(durations.TESTS)], ["tests"]):
        pytest.skip("only some of the tests were asked for")
    assert {item.path.parent.name for item in quick} >= ROOMS


def item(nodeid, *marks, fixtures=()):
    """What the choice sees of a test; `fixtures` are shared by a module."""
    shared = {name: [SimpleNamespace(baseid="f.py", scope="module")] for name in fixtures}
    return SimpleNamespace(
        nodeid=nodeid,
        path=nodeid.partition("::")[0],
        get_closest_marker=lambda name: name if name in marks else None,
        _fixtureinfo=SimpleNamespace(name2fixturedefs=shared),
    )


def test_seconds_choose_and_marks_overrule_them(monkeypatch):
    record = {
        "tests": {"f.py::slow": 3.0, "f.py::asked": 9.0, "g.py::more": 5.0},
        "fixtures": {"f.py::answer": 4 * durations.QUICK},
    }
    monkeypatch.setattr(durations, "read", lambda: record)
    few = [item(f"f.py::{k}", fixtures=["answer"]) for k in range(3)]
    many = [item(f"f.py::{k}", fixtures=["answer"]) for k in range(5)]
    others = [
        item("f.py::slow"),
        item("f.py::asked", "quick"),
        item("f.py::new"),
        item("f.py::sent", "long"),
        item("g.py::more"),
    ]

    def chosen(items):
        part = durations.parts(items)
        return [each.nodeid for each in items if durations.is_quick(each, part[each.nodeid])]

    assert chosen(others) == ["f.py::asked", "f.py::new"]
    # What is shared counts in equal parts.
    assert chosen(few) == []
    assert len(chosen(many)) == 5
    # The longest file first, its tests in their order.
    ordered = durations.longest_first(others, durations.parts(others))
    assert [each.path for each in ordered] == ["f.py"] * 4 + ["g.py"]


def test_what_is_lost_is_named(tmp_path, capsys):
    before, after = tmp_path / "before", tmp_path / "after"
    before.write_text("tests/test_a.py::one[x/y]\ntests/test_a.py::two\n\n3 tests collected\n")
    after.write_text("tests/room/test_a.py::one[x/y]\ntests/room/test_b.py::two\ntests/c.py::new\n")
    assert inventory.main(before, after) == 0
    assert "2 tests before, 3 after; 0 lost, 1 in another file, 1 new" in capsys.readouterr().out
    assert inventory.main(after, before) == 1
    assert "lost: new" in capsys.readouterr().out
