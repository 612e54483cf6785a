# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stub of the extension module has the functions, classes and arguments that the module has."""

import ast
import inspect
import pathlib
import unittest

import nmsfilter
from nmsfilter import _core


def stub():
    text = (pathlib.Path(nmsfilter.__file__).parent / "_core.pyi").read_text()
    return ast.parse(text).body


def arguments(function):
    """As inspect.signature writes them, without types."""
    given = function.args
    defaults = dict(zip([a.arg for a in given.args][len(given.args) - len(given.defaults) :], given.defaults))
    defaults |= {a.arg: default for a, default in zip(given.kwonlyargs, given.kw_defaults) if default is not None}

    def text(argument):
        default = defaults.get(argument.arg)
        return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"

    names = [text(argument) for argument in given.args if argument.arg not in ("self", "cls")]
    if given.kwonlyargs:
        names += ["*", *(text(argument) for argument in given.kwonlyargs)]
    return names


def parameters(function):
    names, is_keyword_only = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            names.append("*")
            is_keyword_only = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        names.append(parameter.name + default)
    return names


class Stub(unittest.TestCase):
    def test_signatures(self):
        compared = 0
        for node in stub():
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(arguments(node), parameters(getattr(_core, node.name)), node.name)
                compared += 1
            elif isinstance(node, ast.ClassDef):
                kind = getattr(_core, node.name)
                for member in node.body:
                    is_property = bool(member.decorator_list)
                    self.assertTrue(hasattr(kind, member.name), f"{node.name}.{member.name}")
                    if not is_property:
                        function = kind if member.name == "__new__" else getattr(kind, member.name)
                        # Python gives those of special methods as (*args, **kwargs).
                        if member.name not in ("__len__", "__call__"):
                            self.assertEqual(arguments(member), parameters(function), f"{node.name}.{member.name}")
                    compared += 1
        self.assertGreater(compared, 30)

    def test_nothing_is_missing(self):
        named = {node.name for node in stub() if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(named, {name for name in vars(_core) if not name.startswith("_")})
        for node in stub():
            if isinstance(node, ast.ClassDef):
                members = {member.name for member in node.body}
                public = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
                self.assertEqual(public - members, set(), node.name)

    def test_what_is_exported_has_documentation(self):
        self.assertEqual(sorted(nmsfilter.__all__), list(nmsfilter.__all__))
        for name in nmsfilter.__all__:
            if name != "__version__":
                self.assertTrue(getattr(nmsfilter, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
