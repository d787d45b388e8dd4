"""The exact value of a text that is nothing but arithmetic; a small parser, nothing is ever evaluated as code."""

from __future__ import annotations

import re
from fractions import Fraction

from ..signatures.numbers import GROUPED, MINUS_SIGNS

_MOST_TOKENS = 400
_LARGEST_POWER = 64
_MOST_BITS = 4096
_TOKEN = re.compile(rf"\s*(?:(?P<number>{GROUPED}(?:\.\d+)?|\.\d+)(?P<percent>\s*%)?|(?P<sign>\*\*|[-+*/^()]))")
_SPELLED = {
    "×": "*", "·": "*", "∙": "*", "⋅": "*", "÷": "/", "\u2044": "/",
    "\\times": "*", "\\cdot": "*", "\\div": "/", "[": "(", "]": ")",
}  # fmt: skip
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")


def evaluate(text: str) -> Fraction | None:
    """Return the value of an arithmetic expression, exactly; None when the text is anything else.

    Reads + - * / ^ and their typographic and LaTeX forms, parentheses, `\\frac{a}{b}`, currency signs and percent
    signs. A percent sign is dropped from a whole answer elsewhere, but inside arithmetic "40 * 5%" is 2. A plain
    number is an expression too. Division by zero, powers above 64 and overlong texts have no value.
    """
    for spelled, sign in {**MINUS_SIGNS, **_SPELLED}.items():
        text = text.replace(spelled, sign)
    text = re.sub(r"\\left|\\right|\\[,;! ]|[$€£¥`\"']", "", text).replace("{,}", ",")
    for _ in range(5):
        text = _FRACTION.sub(r"((\1)/(\2))", text)
    text = re.sub(r"\^\s*\{([^{}]*)\}", r"^(\1)", text)
    text = re.sub(r"(?<=[\d)])\(", "*(", text)
    text = re.sub(r"(?<=[\d)%\s])\s*[xX]\s*(?=[\d(.])", "*", text).strip()
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) > _MOST_TOKENS:
            return None
        tokens.append(match.group("sign") or match.group("number") + ("%" if match.group("percent") else ""))
        position = match.end()
    if not any(token[0].isdigit() or token[0] == "." for token in tokens):
        return None
    try:
        parser = _Parser(tokens)
        value = parser.sum(0)
        return value if parser.position == len(tokens) else None
    except (ValueError, IndexError, ZeroDivisionError):
        return None


class _Parser:
    """Recursive descent over tokens; raises ValueError or IndexError on anything that is no expression."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def sum(self, depth: int) -> Fraction:
        value = self.product(depth)
        while self.peek() in ("+", "-"):
            if self.take() == "+":
                value = _bounded(value + self.product(depth))
            else:
                value = _bounded(value - self.product(depth))
        return value

    def product(self, depth: int) -> Fraction:
        value = self.signed(depth)
        while self.peek() in ("*", "/"):
            sign = self.take()
            other = self.signed(depth)
            value = _bounded(value * other if sign == "*" else value / other)
        return value

    def signed(self, depth: int) -> Fraction:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self.take() == "-"
        value = self.power(depth)
        return -value if negative else value

    def power(self, depth: int) -> Fraction:
        base = self.atom(depth)
        if self.peek() in ("^", "**"):
            self.take()
            exponent = self.signed(depth + 1)
            if exponent.denominator != 1 or abs(exponent) > _LARGEST_POWER:
                raise ValueError("power")
            return _bounded(base ** int(exponent))
        return base

    def atom(self, depth: int) -> Fraction:
        if depth > 50:
            raise ValueError("depth")
        token = self.take()
        if token == "(":
            value = self.sum(depth + 1)
            if self.take() != ")":
                raise ValueError("parenthesis")
            if self.peek() == "%":
                self.take()
            return value
        if not (token[0].isdigit() or token[0] == "."):
            raise ValueError("operand")
        plain = token.rstrip("%")
        whole, _, decimals = plain.rpartition(".") if plain.count(".") == 1 else (plain, "", "")
        digits = re.sub(r"\D", "", whole)
        if len(digits) + len(decimals) > 500:
            raise ValueError("digits")
        value = Fraction(int(digits or "0"))
        if decimals:
            value += Fraction(int(decimals), 10 ** len(decimals))
        return value / 100 if token.endswith("%") else value


def _bounded(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > _MOST_BITS or value.denominator.bit_length() > _MOST_BITS:
        raise ValueError("size")
    return value
