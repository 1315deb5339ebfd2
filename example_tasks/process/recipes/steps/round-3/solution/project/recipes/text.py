"""What is printed."""

from fractions import Fraction

METRIC = ("g", "kg", "ml", "l")


def show_amount(amount, unit=""):
    """An amount as people read it: 1.5 kg, 1 1/2 tbsp."""
    if unit in METRIC:
        return show_decimal(amount)
    whole, rest = divmod(amount, 1)
    return " ".join(str(part) for part in (whole, rest) if part) or "0"


def show_decimal(amount):
    """A fraction with at most two places, halves rounded up, and never less than 0.01."""
    hundredths = max(1, int(amount * 100 + Fraction(1, 2)))
    return f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")


def show_ingredient(ingredient):
    """An ingredient on a line."""
    words = (show_amount(ingredient.amount, ingredient.unit), ingredient.unit, ingredient.name)
    return " ".join(word for word in words if word)
