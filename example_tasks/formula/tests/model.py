"""Random formulas, with what they are worth and the instructions that they become."""

from __future__ import annotations

from random import Random

ONE = 1_000_000
OPERATORS = {"+": "ADD", "-": "SUB", "*": "MUL", "/": "DIV", "^": "POW"}
OPERATORS |= {"=": "EQ", "<>": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE"}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


class NotClear(Exception):
    """The value depends on what later orders change: halves, and what cannot be computed."""


def tree(random: Random, depth: int, marks: list[str]):
    """A number, a name, ("-", tree), or (tree, mark, tree)."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(
            ["x", "y_2", *(str(random.choice([0, 1, 2, 3, 7, 10, 250])) for _ in range(2)), "0.1", "1.25"]
        )
    if random.random() < 0.15:
        return "-", tree(random, depth - 1, marks)
    mark = random.choice(marks)
    right = random.choice(["0", "1", "2", "3"]) if mark == "^" else tree(random, depth - 1, marks)
    return tree(random, depth - 1, marks), mark, right


def quotient(over: int, under: int) -> int:
    if under == 0:
        raise NotClear
    whole, rest = divmod(abs(over), abs(under))
    if 2 * rest == abs(under):
        raise NotClear
    whole += 2 * rest > abs(under)
    return -whole if (over < 0) != (under < 0) else whole


def value(tree, names: dict[str, int]) -> int:
    if isinstance(tree, str):
        if tree in names:
            return names[tree]
        whole, _, places = tree.partition(".")
        return int(whole + places.ljust(6, "0"))
    if len(tree) == 2:
        return -value(tree[1], names)
    left, right = value(tree[0], names), value(tree[2], names)
    match tree[1]:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return quotient(left * right, ONE)
        case "/":
            return quotient(left * ONE, right)
        case "^":
            return quotient(left ** (right // ONE) * ONE, ONE ** (right // ONE))
        case mark:
            holds = {
                "=": left == right,
                "<>": left != right,
                "<": left < right,
                "<=": left <= right,
                ">": left > right,
                ">=": left >= right,
            }
            return holds[mark] * ONE


def shown(value: int) -> str:
    digits = f"{abs(value):07}"
    places = digits[-6:].rstrip("0")
    return "-" * (value < 0) + digits[:-6] + (f".{places}" if places else "")


def written(tree, random: Random, *, tight_power: bool = False) -> str:
    """The text of a formula, with the parentheses that it needs and at times blanks.

    `tight_power` is the grammar of order 5, where a power binds tighter than a minus sign and goes from right to left.
    """

    def level(tree) -> int:
        if isinstance(tree, str):
            return 6
        if len(tree) == 2:
            return 4 if tight_power else 5
        mark = tree[1]
        if mark == "^":
            return 5 if tight_power else 4
        return 3 if mark in "*/" else 2 if mark in "+-" else 1

    def operand(tree, least: int) -> str:
        return text(tree) if level(tree) >= least else f"({text(tree)})"

    def text(tree) -> str:
        if isinstance(tree, str):
            return tree
        if len(tree) == 2:
            return "-" + operand(tree[1], level(tree))
        own = level(tree)
        left, right = (own, own + 1) if own > 1 else (2, 2)
        if tree[1] == "^" and tight_power:
            left, right = 6, 4
        gap = random.choice(["", " ", "\t "])
        return f"{operand(tree[0], left)}{gap}{tree[1]}{gap}{operand(tree[2], right)}"

    return text(tree)


def listing(tree) -> str:
    lines: list[str] = []
    offset = 0

    def add(instruction: str) -> None:
        nonlocal offset
        lines.append(f"{offset:04} {instruction}\n")
        offset += 3 if " " in instruction else 1

    def emit(tree) -> None:
        if isinstance(tree, str):
            add(f"{'PUSH' if tree[0].isdigit() else 'LOAD'} {tree}")
        elif len(tree) == 2:
            emit(tree[1])
            add("NEG")
        else:
            emit(tree[0])
            emit(tree[2])
            add(OPERATORS[tree[1]])

    emit(tree)
    add("RET")
    return "".join(lines)


def samples(seed: int, number: int, marks: list[str], *, tight_power: bool = False):
    """Formulas with what `evaluate` and `listing` say of them: (text, values, value, listing)."""
    random = Random(seed)
    names = {"x": 3_500_000, "y_2": -250_000}
    values = {name: shown(each) for name, each in names.items()}
    while number:
        found = tree(random, random.randint(1, 5), marks)
        try:
            worth = value(found, names)
        except NotClear:
            continue
        number -= 1
        yield written(found, random, tight_power=tight_power), values, shown(worth), listing(found)
