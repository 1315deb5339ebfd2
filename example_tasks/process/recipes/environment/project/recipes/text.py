"""What is printed."""


def show_amount(amount):
    """An amount as people read it."""
    return f"{amount:g}"


def show_ingredient(ingredient):
    """An ingredient on a line."""
    words = (show_amount(ingredient.amount), ingredient.unit, ingredient.name)
    return " ".join(word for word in words if word)
