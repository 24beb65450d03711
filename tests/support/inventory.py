"""Whether a test was lost when tests moved: compares two lists of what pytest collects.

    pytest --collect-only > before.txt      (then the move)
    pytest --collect-only > after.txt
    python tests/support/inventory.py before.txt after.txt

A test is known by its name and parameters, and by the name of its file where two files have the
same; the folder does not count. Exit status 1 if any of the first list is not in the second.
"""

import sys
from collections import Counter
from pathlib import Path


def listed(path: Path) -> Counter[str]:
    """`file.py::test[parameters]` of every line that names a test."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return Counter(without_folder(line) for line in lines if "::" in line)


def without_folder(line: str) -> str:
    place, colons, test = line.partition("::")
    return place.rpartition("/")[2] + colons + test


def named(tests: Counter[str]) -> Counter[str]:
    """The tests without their files: one that moved to another file is not lost."""
    return Counter(test.partition("::")[2] for test in tests.elements())


def main(before: Path, after: Path) -> int:
    old, new = listed(before), listed(after)
    lost, moved = named(old) - named(new), (old - new).total()
    print(
        f"{old.total()} tests before, {new.total()} after; {lost.total()} lost, "
        f"{moved - lost.total()} in another file, {(named(new) - named(old)).total()} new"
    )
    print("\n".join(f"lost: {test}" for test in sorted(lost.elements())))
    return int(lost.total() > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
