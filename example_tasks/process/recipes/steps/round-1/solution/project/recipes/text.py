"""What is printed."""


def show_amount(amount):
    """A fraction as people read it: 1 1/2."""
    whole, rest = divmod(amount, 1)
    return " ".join(str(part) for part in (whole, rest) if part) or "0"


def show_ingredient(ingredient):
    """An ingredient on a line."""
    words = (show_amount(ingredient.amount), ingredient.unit, ingredient.name)
    return " ".join(word for word in words if word)
