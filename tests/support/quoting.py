"""Whether a page quotes what a program prints: words are the same, numbers but for what another
machine changes."""

import re

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# Seconds; hashes of answers; and what a certificate chooses among near equals: points, parameters,
# λ, contraction, and the theorem that happens to give the smallest bound.
CHOSEN = re.compile(
    r"(?:import|prepare|compile|solve|certify|files|total) [\d.]+|[\d,]+ (?:points|parameters)"
    r"|agree to [\d.e+-]+ %|Δv - [\d.]+ v"
    r"|SHA-256 [0-9a-f]+…"
    r"|contraction:? +[\d.e+-]+ \(\w+\) in [^\n│]+|theorem:? +[^\n│]+|largest error by:? +[^\n│]+"
)
# A row that goes on below its second column.
CONTINUED = re.compile(r"\n {20,}(?=\S)")
REPEATED = re.compile(r"(\S.{9,}?)(?: ?\1)+")
FRAME = re.compile(r"[\s│─┃━┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┡┩╇]+")
# Bounds and errors are those of a fit near rounding level and differ from one machine to the next;
# other numbers are digits of the solution.
SMALL, FACTOR, RELATIVE = 1e-3, 5.0, 2e-3


def unit(text: str) -> float:
    """One unit in the last digit that is printed."""
    digits, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


def agree(one: str, other: str) -> bool:
    first, second = (float(text.replace(",", "")) for text in (one, other))
    size = max(abs(first), abs(second))
    if size < SMALL:
        return size <= FACTOR * min(abs(first), abs(second))
    return abs(first - second) <= max(RELATIVE * size, 1.01 * unit(one))


def masked(text: str) -> str:
    """Without what a certificate chooses."""
    return CHOSEN.sub("chosen", CONTINUED.sub(" ", text))


def words(text: str) -> str:
    """Without numbers and frames as well."""
    return FRAME.sub(" ", NUMBER.sub("#", masked(text))).strip()


def form(text: str) -> str:
    """The words, rows of one form that follow each other counted once: how many steps a loop takes
    near rounding level differs from one machine to the next."""
    return REPEATED.sub(r"\1", words(text))


def compare(quoted: str, printed: str) -> list[str]:
    """What differs: words, or numbers by more than another machine may change them."""
    if words(quoted) != words(printed):
        return [f"quoted: {words(quoted)}", f"printed: {words(printed)}"]
    numbers = (NUMBER.findall(masked(text)) for text in (quoted, printed))
    return [
        f"{one} became {other}"
        for one, other in zip(*numbers, strict=True)
        if not agree(one, other)
    ]
