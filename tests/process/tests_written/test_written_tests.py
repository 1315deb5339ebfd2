"""What tests assert, and what of the product they import and call, in Python and in other languages."""

from __future__ import annotations

import ast

import pytest

from pytest_evocode.process.tests_written.python import said_by
from pytest_evocode.process.tests_written.written_tests import changed_symbols, covers, written_tests
from pytest_evocode.process.trajectory.file_roles import FileRoles
from tests.process.trajectories import Recording, read


def density(path: str, text: str) -> tuple[int, int]:
    """Meaningful and trivial assertions in a test file."""
    (activity,) = read(Recording().write(path, text))
    tests = written_tests(activity, FileRoles())
    assert not tests.unread
    return sum(test.asserts for test in tests.functions), sum(test.trivial for test in tests.functions)


def covered(source: str, text: str, tests: str, test_text: str) -> list[str]:
    """Return the product's names that the tests import and call."""
    (activity,) = read(Recording(files={}).write(source, text).write(tests, test_text))
    symbols, unread = changed_symbols(activity, FileRoles())
    assert not unread
    written = written_tests(activity, FileRoles()).verifying
    return [symbol.name for symbol in symbols if any(covers(test, symbol) for test in written)]


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("assert f(1) == 2", (1, 0)),
        ("assert f(1)", (1, 0)),
        ("with pytest.raises(ValueError):\n        f(1)", (1, 0)),
        ("with pytest.warns(UserWarning):\n        f(1)", (1, 0)),
        ("pytest.raises(ValueError, f, 1)", (1, 0)),
        ("assert f(0.1) == pytest.approx(0.3)", (1, 0)),
        ("mock.assert_called_once_with(f(1))", (1, 0)),
        ("numpy.testing.assert_allclose(f(1), 2)", (1, 0)),
        ("check(f(1))", (1, 0)),
        ("for n in (1, 2):\n        assert f(n)", (1, 0)),
        ("with pytest.raises(ValueError):\n        raise ValueError", (0, 1)),
        ("assert True", (0, 1)),
        ("assert 'text'", (0, 1)),
        ("assert not False", (0, 1)),
        ("assert 2 + 2 == 4", (0, 1)),
        ("assert f == f", (0, 1)),
        ("assert f(1) == f(1)", (0, 1)),
        ("assert (f(1), 'message')", (0, 1)),
        ("assert f(1) or True", (0, 1)),
        ("x = 3\n    assert x == 3", (0, 1)),
        ("assert sorted([2, 1]) == [1, 2]", (0, 1)),
        ("f(1)", (0, 0)),
    ],
)
def test_python_assertions(body: str, counts: tuple[int, int]) -> None:
    helper = "def check(value):\n    assert value > 0\n\n\n"
    assert (
        density("tests/test_a.py", f"import pytest\nfrom a import f\n\n\n{helper}def test_a(mock):\n    {body}\n")
        == counts
    )


def test_what_an_assertion_calls_with_is_no_message() -> None:
    node = ast.parse(
        "def test_a(self):\n    self.assertRaises(E, f, 'refund')\n    self.assertEqual(f(1), 2, 'spoken')\n"
        "    g.assert_called_with('a', 1, 'receipt')\n"
    ).body[0]
    assert isinstance(node, ast.FunctionDef)
    said = said_by(node)
    assert "refund" in said
    assert "receipt" in said
    assert "spoken" not in said


def test_unittest_assertions() -> None:
    text = "class A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(1), 2)\n"
    text += "        self.assertTrue(True)\n        with self.assertRaises(E):\n            f(2)\n"
    assert density("tests/test_a.py", text) == (2, 1)


@pytest.mark.parametrize(
    ("path", "text", "counts"),
    [
        ("a.test.js", "test('adds', () => { expect(add(1)).toBe(2); expect(true).toBe(true); });", (1, 1)),
        ("a.test.ts", "it('adds', async () => { assert.equal(add(1), 2); assert.ok(1); });", (1, 1)),
        ("a_test.go", 'package a\nfunc TestA(t *testing.T) { if Add(1) != 2 { t.Errorf("no") } }', (1, 0)),
        (
            "a_test.go",
            "package a\nfunc TestA(t *testing.T) { require.Equal(t, 2, Add(1)); assert.True(t, true) }",
            (1, 1),
        ),
        ("src/a.rs", "#[test]\nfn adds() { assert_eq!(add(1), 2); assert!(true); }", (1, 1)),
    ],
)
def test_assertions_in_other_languages(path: str, text: str, counts: tuple[int, int]) -> None:
    assert density(path, text) == counts


@pytest.mark.parametrize(
    ("test_text", "names"),
    [
        ("from shop.cart import total\ndef test_a():\n    assert total([]) == 0\n", ["total"]),
        ("from shop.cart import total as t\ndef test_a():\n    assert t([]) == 0\n", ["total"]),
        ("import shop.cart\ndef test_a():\n    assert shop.cart.total([]) == 0\n", ["total"]),
        ("from shop import cart\ndef test_a():\n    assert cart.total([]) == 0\n", ["total"]),
        ("from shop import total\ndef test_a():\n    assert total([]) == 0\n", ["total"]),
        ("from shop.cart import Cart\ndef test_a():\n    assert Cart().add(1) is None\n", ["Cart"]),
        ("from shop.cart import Cart\ndef test_a():\n    assert Cart.empty()\n", ["Cart"]),
        (
            "from shop.cart import total\ndef run(x):\n    return total(x)\ndef test_a():\n    assert run([]) == 0\n",
            ["total"],
        ),
        (
            "import pytest\nfrom shop.cart import Cart\n@pytest.fixture\ndef cart():\n    return Cart()\n"
            "def test_a(cart):\n    assert cart.total() == 0\n",
            ["Cart"],
        ),
        ("from shop.cart import total\ndef test_a():\n    assert total\n", []),
        ("from shop.cart import total\ndef test_a():\n    assert True\n    total([])\n", []),
        ("from other import total\ndef test_a():\n    assert total([]) == 0\n", []),
        ("def test_a():\n    assert total([]) == 0\n", []),
    ],
)
def test_what_a_python_test_imports_and_calls(test_text: str, names: list[str]) -> None:
    source = "def total(items):\n    return sum(items)\n\n\nclass Cart:\n    def add(self, item):\n        pass\n"
    assert covered("src/shop/cart.py", source, "tests/test_cart.py", test_text) == names


def test_what_tests_in_other_languages_call() -> None:
    script = "export function total(x) { return x; }\nexport const other = () => 1;\n"
    test = "import { total } from '../src/cart.js';\ntest('t', () => { expect(total(1)).toBe(1); });\n"
    assert covered("src/cart.js", script, "test/cart.test.js", test) == ["total"]
    go = "package cart\nfunc Total(x int) int { return x }\nfunc Other() {}\n"
    test = "package cart\nfunc TestTotal(t *testing.T) { if Total(1) != 1 { t.Fatal() } }\n"
    assert covered("cart.go", go, "cart_test.go", test) == ["Total"]


def test_a_changed_definition_is_one_and_a_new_docstring_is_none() -> None:
    before = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef _c():\n    return 3\n"
    after = before.replace("return 1", "return 9").replace("    return 2", '    """Two."""\n    return 2')
    (activity,) = read(
        Recording(files={"a.py": before}).bash("edit", changes={"a.py": after.replace("return 3", "return 4")})
    )
    symbols, _ = changed_symbols(activity, FileRoles())
    assert [str(symbol) for symbol in symbols] == ["a.py:1 a"]


def test_tests_that_cannot_be_read_have_no_value_and_say_why() -> None:
    for path, text, why in (
        ("tests/test_a.py", "def test_a(:\n", "it does not parse: "),
        ("a_spec.rb", "it 'adds' do\nend\n", "tests in .rb cannot be read"),
    ):
        (activity,) = read(Recording().write(path, text))
        assert written_tests(activity, FileRoles()).unread[path].startswith(why)
