"""Collecting source code: the definitions that some functions and classes need, in an order in which they can be run.

An exported debate runs the very code of its strategy: what is needed is looked up by name, from definition to
definition, in the modules where it stands, and copied as it is written. Names may be answered by stand-ins instead.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ...errors import InputError
from ...registry import Registry

_PACKAGE = __package__.split(".")[0]
#: Packages whose names may be imported by bundled code besides the standard library.
_ALLOWED = ("pydantic",)
_STANDARD = sys.stdlib_module_names


@dataclass
class Bundle:
    """Definitions collected so far.

    Args:
        stand_ins: (module, name) of a definition to the (module, name) of what answers for it.
        members: decides which members of a class are copied: from the class to their names; None for all.

    Attributes:
        imports: import statements of the standard library and of allowed packages.
        sources: definitions in order.
    """

    stand_ins: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    members: Mapping[type, set[str]] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)
    sources: list[str] = field(default_factory=list)
    _homes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _later: list[tuple[str, str]] = field(default_factory=list)

    def add(self, thing: Any) -> None:
        """Add a function or class of ours, and all that it needs.

        Raises:
            InputError: when it needs something that cannot be copied.
        """
        self.need(thing.__module__, thing.__name__)

    def need(self, module: str, name: str) -> None:
        """Add a module's definition, and all that it needs."""
        self._take(module, name)
        while self._later:
            self._take(*self._later.pop(0))

    def _take(self, module: str, name: str) -> None:
        module, name = self.stand_ins.get((module, name), (module, name))
        known = self._homes.get(name)
        if known == (module, name):
            return
        if known is not None:
            raise InputError(
                f"this strategy cannot be exported as one file: '{name}' is defined in {known[0]} and in {module}"
            )
        source = _Module.of(module)
        node = source.definitions.get(name)
        if node is None:
            target = source.imported.get(name)
            if target is None:
                raise InputError(
                    f"this strategy cannot be exported as one file: {module} has no definition of '{name}'"
                )
            self._import(target)
            return
        self._homes[name] = (module, name)
        kept = self._members(module, name, node)
        now, later = _needed_names(node, kept)
        for wanted in now:
            self._resolve(source, wanted, at_once=True)
        self.sources.append(source.text(node, kept))
        for wanted in later:
            self._resolve(source, wanted, at_once=False)
        found = getattr(importlib.import_module(module), name)
        if isinstance(found, Registry):
            for _, item in found:
                self._later.append((item.__module__, item.__name__))

    def _members(self, module: str, name: str, node: ast.AST) -> set[str] | None:
        if not isinstance(node, ast.ClassDef):
            return None
        return self.members.get(getattr(importlib.import_module(module), name))

    def _resolve(self, source: _Module, name: str, *, at_once: bool) -> None:
        if (source.name, name) in self.stand_ins or name in source.definitions:
            target: Any = (source.name, name)
        elif name in source.imported:
            target = source.imported[name]
        elif hasattr(builtins, name):
            return
        else:
            return  # a local variable of the definition
        if isinstance(target, _Import):
            if target.ours:
                target = (target.module, target.name)
            elif (target.module, target.name) in self.stand_ins:
                target = self.stand_ins[target.module, target.name]
            else:
                self._import(target)
                return
        target = self.stand_ins.get(target, target)
        if at_once:
            self._take(*target)
        else:
            self._later.append(target)

    def _import(self, target: _Import) -> None:
        root = target.module.split(".")[0]
        if root not in _ALLOWED and root not in _STANDARD:
            raise InputError(f"this strategy cannot be exported as one file: it uses the package '{root}'")
        self.imports.add(target.statement)


@dataclass(frozen=True)
class _Import:
    """An imported name: `from module import name`, or `import module` when name is empty."""

    module: str
    name: str
    alias: str

    @property
    def ours(self) -> bool:
        return self.module.split(".")[0] == _PACKAGE

    @property
    def statement(self) -> str:
        if not self.name:
            return f"import {self.module}" + (f" as {self.alias}" if self.alias != self.module.split(".")[0] else "")
        return f"from {self.module} import {self.name}" + (f" as {self.alias}" if self.alias != self.name else "")


class _Module:
    """The source of one module, by definition."""

    _known: dict[str, _Module] = {}  # noqa: RUF012  a cache of parsed modules, shared on purpose

    def __init__(self, name: str) -> None:
        self.name = name
        module = importlib.import_module(name)
        try:
            text = inspect.getsource(module)
        except (OSError, TypeError):
            raise InputError(f"the source code of {name} is not at hand, so that it cannot be exported") from None
        self.lines = text.splitlines()
        self.definitions: dict[str, ast.stmt] = {}
        self.imported: dict[str, _Import] = {}
        for node in ast.parse(text).body:
            self._read(node, module)

    @classmethod
    def of(cls, name: str) -> _Module:
        if name not in cls._known:
            cls._known[name] = cls(name)
        return cls._known[name]

    def _read(self, node: ast.stmt, module: ModuleType) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        self.definitions.setdefault(part.id, node)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), module.__package__ or "")
            for alias in node.names:
                self.imported[alias.asname or alias.name] = _Import(base, alias.name, alias.asname or alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self.imported[name] = _Import(alias.name, "", name)
        elif isinstance(node, ast.If):
            for inner in node.body:  # `if TYPE_CHECKING:`
                self._read(inner, module)

    def text(self, node: ast.stmt, kept: set[str] | None) -> str:
        """Return a definition's source, with the comments above it and only the kept members of a class."""
        if not isinstance(node, ast.ClassDef) or kept is None:
            return self._slice(self._start(node), node.end_lineno or node.lineno)
        bases = [base for base in node.decorator_list if not _is_registration(base)]
        first = min([node.lineno, *(base.lineno for base in bases)])
        parts = [self._slice(first, node.body[0].lineno - 1)]
        for number, member in enumerate(node.body):
            if number == 0 and isinstance(member, ast.Expr):
                parts.append(self._slice(member.lineno, member.end_lineno or member.lineno) + "\n")
            elif _member_name(member) in kept:
                parts.append(self._slice(self._start(member), member.end_lineno or member.lineno) + "\n")
        return "\n".join(parts).rstrip()

    def _start(self, node: ast.stmt) -> int:
        decorators = getattr(node, "decorator_list", [])
        line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        while line > 1 and self.lines[line - 2].strip().startswith("#") and "# --" not in self.lines[line - 2]:
            line -= 1
        return line

    def _slice(self, first: int, last: int) -> str:
        return "\n".join(self.lines[first - 1 : last])


def _is_registration(decorator: ast.expr) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Attribute)
        and decorator.func.attr == "register"
    )


def _member_name(member: ast.stmt) -> str:
    if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
        return member.name
    if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
        return member.target.id
    if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
        return member.targets[0].id
    return ""


def _needed_names(node: ast.stmt, kept: set[str] | None) -> tuple[list[str], list[str]]:
    """Return the names that a definition needs when it is run, and those that its functions need when they are called.

    Annotations count as needed when called, those of class fields when run: Pydantic reads them.
    """
    now: list[str] = []
    later: list[str] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        now += _names_of([*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)])
        later += _names_of([node])
    elif isinstance(node, ast.ClassDef):
        decorators = [item for item in node.decorator_list if kept is None or not _is_registration(item)]
        now += _names_of([*decorators, *node.bases, *node.keywords])
        for member in node.body:
            if kept is not None and _member_name(member) not in kept:
                continue
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                first, then = _needed_names(member, None)
                now += first
                later += then
            else:
                now += _names_of([member])
    else:
        now += _names_of([node])
    return list(dict.fromkeys(now)), [name for name in dict.fromkeys(later) if name not in now]


def _names_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                yield part.id


def reachable_members(kind: type, base: type, start: Iterable[str]) -> dict[type, set[str]]:
    """Return which members of a class, and of its bases up to `base`, are used when some of them are.

    Args:
        kind: the class.
        base: the class that has a stand-in; it and what is above it do not count.
        start: names of members used from outside.
    """
    classes = [item for item in kind.__mro__ if issubclass(item, base) and item is not base]
    bodies = {item: _body(item) for item in classes}
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for members in bodies.values():
            if name in members:
                waiting += _own_attributes(members[name])
    return {item: reached & set(bodies[item]) for item in classes}


def _body(kind: type) -> dict[str, ast.stmt]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    (node,) = tree.body
    assert isinstance(node, ast.ClassDef)
    return {_member_name(member): member for member in node.body if _member_name(member)}


def _own_attributes(member: ast.stmt) -> Iterator[str]:
    """Yield the names after `self.`, `cls.` and `super().`."""
    for part in ast.walk(member):
        if isinstance(part, ast.Attribute):
            value = part.value
            on_self = isinstance(value, ast.Name) and value.id in ("self", "cls")
            on_super = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
            if on_self or on_super:
                yield part.attr
