"""Every language of the table: the definitions that its grammar finds in a text."""

import pytest

from duckflow.code.syntax import languages, symbols_in

TEXTS = {
    "a.py": (
        "X: int = 1\na.b = 2\nclass A(B):\n    y = 1\n    @property\n    def m(self):\n        z = 1\n"
        "        def inner(): ...\nasync def top(): ...\n",
        "variable X, class A, variable A.y, function A.m, function A.m.inner, function top",
    ),
    "a.ts": (
        "export class A<T> extends B { f = () => 1; m(): void {} }\ninterface I { q(): void }\ntype T1 = string;\n"
        "enum E { X }\nexport const h = async (x) => { const local = 1; };\nconst {p, q} = h();\nexport const K = 1;\n"
        "namespace N { export function inn() {} }\nabstract class Z { abstract w(): void }\n",
        "class A, function A.f, function A.m, interface I, function I.q, type T1, enum E, function h, variable K,"
        " namespace N, function N.inn, class Z, function Z.w",
    ),
    "a.tsx": ("export function App() { return <p>{x}</p> }\n", "function App"),
    "a.js": (
        "class A extends B { f = 1; m() {} }\nconst h = () => 1;\nfunction* gen() {}\n",
        "class A, variable A.f, function A.m, function h, function gen",
    ),
    "a.go": (
        "package p\ntype S struct { F int }\ntype I interface { M() error }\n"
        "func (s *S) Get() int { x := 1; return x }\n"
        "func Top() {}\nconst C1 = 1\nvar V1 = 2\n",
        "type S, type I, function I.M, function S.Get, function Top, variable C1, variable V1",
    ),
    "a.rs": (
        "pub struct S { f: i32 }\nimpl S { fn new() -> Self { S{f:1} } }\nimpl Tr for S { fn t(&self) {} }\n"
        "trait Tr { fn t(&self); }\nenum En { A }\nmod m { pub fn inner() {} }\n"
        "macro_rules! mac { () => {} }\nconst K: i32 = 1;\n",
        "class S, function S.new, function S.t, interface Tr, function Tr.t, enum En, namespace m, function m.inner,"
        " function mac, variable K",
    ),
    "a.java": (
        "class A extends B { int x = 1; A() {} int m(int p) { int y = 1; return y; }\n"
        "enum En { X } record R(int a) {} }\n",
        "class A, variable A.x, constructor A.A, function A.m, enum A.En, class A.R",
    ),
    "a.c": (
        "#define M 1\n#define F(x) (x)\ntypedef struct s { int a; } s_t;\nstruct q *make(void);\n"
        "static int *foo(int a) { return 0; }\n",
        "variable M, function F, type s_t, class s, function foo",
    ),
    "a.cpp": (
        "namespace n { class A : public B { int m() { return 1; } void decl(); }; }\n"
        "void n::A::decl() {}\nusing X = n::A;\n"
        "template <class T> T tf(T a) { return a; }\n",
        "namespace n, class n.A, function n.A.m, function n.A.decl, type X, function tf",
    ),
    "a.rb": (
        "module M\n class A < B\n  K = 1\n  x = 2\n  def m(p) = p\n  def self.s; end\n end\nend\ndef top?; end\n",
        "namespace M, class M.A, variable M.A.K, function M.A.m, function M.A.s, function top?",
    ),
    "a.php": (
        "<?php\nclass A extends B { const K = 1; public int $x = 1; function m() {} }\n"
        "interface I {}\nfunction top() {}\n",
        "class A, variable A.K, variable A.x, function A.m, interface I, function top",
    ),
    "a.cs": (
        "namespace N { class A : B { int P { get; set; } A() {} int M() { return 1; } } interface I { void Q(); } }\n",
        "namespace N, class N.A, variable N.A.P, constructor N.A.A, function N.A.M, interface N.I, function N.I.Q",
    ),
    "a.kt": (
        "class A(val x: Int) : B() {\n  fun m(): Int { return 1 }\n  val y = 1\n}\n"
        "fun String.ext() {}\ntypealias T = A\n",
        "class A, function A.m, variable A.y, function ext, type T",
    ),
    "a.swift": (
        "class A: B { var x = 1; func m() {} }\nprotocol P { func q() }\nextension A { func e() {} }\nfunc top() {}\n",
        "class A, variable A.x, function A.m, interface P, function P.q, class A, function A.e, function top",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_definitions_of_a_text_are_found(name: str) -> None:
    text, expected = TEXTS[name]
    found = [f"{one.what} {one.qualified}" for one in symbols_in(text, name)]
    assert found == [one.strip() for one in expected.split(",")]


def test_every_language_of_the_table_is_tried() -> None:
    tried = {languages()[name[1:]].grammar for name in TEXTS}
    assert tried == {language.grammar for language in languages().values()}


def test_lines_begin_with_the_decorators_and_unknown_languages_have_nothing() -> None:
    [name] = symbols_in("\n@a\n@b(1)\ndef f(\n    x,\n):\n    return x\n", "f.py")
    assert (name.start, name.line, name.end) == (2, 4, 7)
    assert symbols_in("defmodule X do\nend\n", "x.ex") == []


@pytest.mark.parametrize("text", ["", "\0", "class (", "def f(:\n" * 50, "(" * 3000, "\udcff x = 1"])
def test_a_broken_text_breaks_nothing(text: str) -> None:
    for suffix in languages():
        symbols_in(text.encode("utf-8", "replace").decode(), f"x{suffix}")
