# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stub of the extension module has the functions, classes and arguments that the module has."""

import ast
import inspect
import json
import pathlib
import re
import unittest

import numpy

import nmsfilter
from nmsfilter import _core


def stub():
    text = (pathlib.Path(nmsfilter.__file__).parent / "_core.pyi").read_text()
    return ast.parse(text).body


def bases(node):
    return {ast.unparse(base).split("[")[0] for base in node.bases} if isinstance(node, ast.ClassDef) else set()


def typed_dicts():
    """The fields of each TypedDict, with the texts of their types."""
    found = [node for node in stub() if "TypedDict" in bases(node)]
    return {node.name: {field.target.id: ast.unparse(field.annotation) for field in node.body} for node in found}


def arguments(function):
    """The names of the arguments in the stub."""
    given = function.args
    names = {argument.arg for argument in given.args + given.kwonlyargs} - {"self", "cls"}
    if given.kwarg:
        names |= set(typed_dicts()[ast.unparse(given.kwarg.annotation).removeprefix("Unpack[").removesuffix("]")])
    return names


def parameters(function):
    found = inspect.signature(function).parameters.values()
    return {it.name for it in found if it.kind is not it.VAR_KEYWORD} - {"self", "cls"}


class Stub(unittest.TestCase):
    def test_signatures(self):
        compared = 0
        protocols = {node.name: node for node in stub() if "Protocol" in bases(node)}
        for node in stub():
            if isinstance(node, ast.FunctionDef):
                self.assertEqual(arguments(node), parameters(getattr(_core, node.name)), node.name)
                compared += 1
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) in protocols:
                for overload in protocols[node.annotation.id].body:
                    self.assertEqual(arguments(overload), parameters(getattr(_core, node.target.id)), node.target.id)
                    compared += 1
            elif isinstance(node, ast.ClassDef) and not bases(node) & {"TypedDict", "Protocol"}:
                kind = getattr(_core, node.name)
                for member in node.body:
                    self.assertTrue(hasattr(kind, member.name), f"{node.name}.{member.name}")
                    # Python gives the arguments of special methods as (*args, **kwargs).
                    if not member.decorator_list and member.name not in ("__len__", "__iter__", "__getitem__"):
                        function = kind if member.name == "__new__" else getattr(kind, member.name)
                        self.assertEqual(arguments(member), parameters(function), f"{node.name}.{member.name}")
                    compared += 1
        self.assertGreater(compared, 40)

    def test_nothing_is_missing(self):
        named = {node.name for node in stub() if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        named |= {node.target.id for node in stub() if isinstance(node, ast.AnnAssign)}
        public = {name for name in vars(_core) if not name.startswith("_")}
        self.assertEqual(public - named, set())
        for node in stub():
            if isinstance(node, ast.ClassDef) and node.name in public:
                members = {member.name for member in node.body}
                public_members = {name for name in vars(getattr(_core, node.name)) if not name.startswith("_")}
                self.assertEqual(public_members - members, set(), node.name)

    def test_choices_are_those_of_the_core(self):
        texts = {
            node.target.id: ast.unparse(node.value)
            for node in stub()
            if isinstance(node, ast.AnnAssign) and node.value is not None
        }
        one = numpy.zeros((1, 4), "float32"), numpy.zeros(1, "float32")

        def make(settings, name):
            if settings == "Settings":
                nmsfilter.Decoder(**{name: "?"})
            elif settings == "SuppressSettings":
                nmsfilter.suppress(*one, **{name: "?"})
            else:
                nmsfilter.nms(*one, 0.5, **{name: "?"})

        compared = 0
        for settings, fields in typed_dicts().items():
            for name, text in fields.items():
                text = texts.get(text.removesuffix(" | None"), text)
                if text.startswith("Literal["):
                    choices = ast.literal_eval(text.removesuffix(" | None").removeprefix("Literal"))
                    with self.assertRaises(nmsfilter.InputError) as caught:
                        make(settings, name)
                    known = re.search("expected one of (.*), got", str(caught.exception)).group(1)
                    self.assertEqual(sorted(choices), sorted(json.loads(f"[{known}]")), (settings, name))
                    compared += 1
        self.assertEqual(compared, 14)

    def test_what_is_exported_has_documentation(self):
        self.assertEqual(sorted(nmsfilter.__all__), list(nmsfilter.__all__))
        for name in nmsfilter.__all__:
            if name != "__version__":
                self.assertTrue(getattr(nmsfilter, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
