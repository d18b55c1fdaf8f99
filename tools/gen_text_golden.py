#!/usr/bin/env python3
"""Writes wam/data/text_golden.inc: what Python makes of awkward instructions.

Needs ftfy from PyPI; the product never runs this.
    python3 tools/gen_text_golden.py > wam/data/text_golden.inc
"""
import ast
import html
import re
import sys
import warnings

import ftfy

warnings.simplefilter("ignore", DeprecationWarning)  # unknown escapes in string literals


def clean(text):
    text = html.unescape(html.unescape(ftfy.fix_text(text))).strip()
    return re.sub(r"\s+", " ", text).strip()


def instruction(text):
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return text
    return str(value[0]) if isinstance(value, (list, tuple)) else str(value)


def misread(text, codec):
    return text.encode("utf-8").decode(codec)


CLEAN = [
    "pick up the cup",
    "  leading   and\ttabs\u00a0here \n new line\r\nand\rmore\u2028end ",
    "\u201cCurly\u201d \u2018quotes\u2019 it\u2019s \u201alow\u201b \u201e",
    "\ufb01ne \ufb02our e\ufb03cient \ufb06op \u0132sselmeer \u01c4 \u0149",
    "\uff26\uff35\uff2c\uff2c\u3000\uff37\uff29\uff24\uff34\uff28 \uff11\uff12 \uff76\uff9e\uff85",
    "caf\u00e9 na\u00efve re\u0301sume\u0301 \u00fcber",
    misread("caf\u00e9", "latin-1"),
    misread("caf\u00e9 na\u00efve", "latin-1"),
    "it\u00e2\u20ac\u2122s fine \u00e2\u20ac\u201d really\u00e2\u20ac\u00a6",
    misread("\u628a\u7ea2\u8272", "latin-1"),
    misread(misread("caf\u00e9", "latin-1"), "latin-1"),
    "plain \u2019quote\u2019 and caf\u00c3\u00a9 together",
    "robot \u00f0\u0178\u00a4\u2013 emoji",
    "temperature 20\u00c2\u00b0C",
    "\u00c2\u00a0nbsp\u00c2\u00a0",
    "a &amp; b &amp;amp; c &amp;amp;lt; &lt;tag&gt; &quot;q&quot; &#39;s&#39; &#x41;&#65;",
    "a < b &amp; c &lt; d",
    "AT&T R&D &unknown; &copy &copyright &notit; &ampersand &#0; &#128; &#xD800; &#1114112; &#;",
    "&EACUTE;l &NTILDE; &SZLIG; &hellip; &Jscr; &fjlig; &lt",
    "ctrl\x01\x02 bell\x07 \x1b[31mred\x1b[0m del\x7f bom\ufeff zero\u200bwidth \ufffc",
    "\x93smart\x94 \x85 \x80",
    "\u628a\u7ea2\u8272\u65b9\u5757\u653e\u8fdb\u76d2\u5b50\u91cc",
    "\u041f\u043e\u0434\u043d\u0438\u043c\u0438\u0442\u0435 \u0447\u0451\u0440\u043d\u0443\u044e \u043c\u0438\u0441\u043a\u0443",
    "\u8d64\u3044\u7a4d\u307f\u6728\u3092\u7bb1\u306b\u5165\u308c\u3066\u304f\u3060\u3055\u3044\u3002",
    "\u0639\u0631\u0628\u064a \u0661\u0662\u0663 \u05e9\u05dc\u05d5\u05dd",
    "1\u00bd \u2460 m\u00b2 \u2212 \u00d7 \u2192 \u20ac",
    "fa\u00e7ade \u00c5ngstr\u00f6m A\u030angstro\u0308m \u00d8re \u00c6gir \u00dfe \u00de\u00fe",
    "",
    " \u3000 ",
    "\U0001f916\U0001f9be test",
]

LITERALS = [
    "pick up the cup", "['pick up the cup']", '["a", "b"]', "('x', 'y')", "('x',)", "('x')",
    "'quoted'", '"it\'s"', "5", "-5", "--5", "007", "0", "00", "1_000", "1__0", "0x10", "0b101",
    "0o17", "3.10", "1e3", "1e16", "1e-5", "0.0001", ".5", "5.", "-0.0", "1.5e300", "True",
    "False", "None", "true", "...", "1, 2", "'a', 'b'", "'a' 'b'", "[1, 2]", "[['a', 'b'], 'c']",
    "[None]", "[1.0]", "[True, 1]", "[('it\\'s', 2)]", "['a',]", "['a' 'b']", "['a'", "a]", "[a]",
    "[]x", "3 cups", "pick 3", "-", "+", ".", "'open", "'''triple'''", "'''a\nb'''", "'a\nb'",
    r"'esc \x41 \u00e9 \n \t \\ \' \q \101'", r"r'raw \n'", r"u'uni'", "f'no'", "'\\N{DASH}'",
    " 'lead'", "'trail' ", "'trail'\n", "put it in 'a'", "'a' put", "[ 'sp' , 'b' ]",
    "[\n'line',\n'b'\n]", "Trueish", "None of them", "{'a'", "(1)", "((1))", "((1),)", "1,",
    "'caf\u00e9'", "\u628a\u7ea2", "['\u628a\u7ea2']", "1 + 1", "lambda: 1", "[1] + [2]", "''",
]

LOWER = [
    "Pick UP The CUP", "\u00c9COLE \u00dcBER \u041f\u041e\u0414", "\u0130stanbul I",
    "\u039f\u0394\u039f\u03a3 \u03a3\u0391\u03a3. \u03a3 A\u03a3B a\u03a3\u0301", "\u1e9e \u01c5 \uff26",
    "\u00df \u01f0",
]


def c_string(text):
    data = text.encode()
    out, last_octal = "", False
    for byte in data:
        char = chr(byte)
        if 32 <= byte < 127 and char not in '"\\?':
            if last_octal and char in "01234567":
                out += '" "'
            out += char
            last_octal = False
        else:
            out += f"\\{byte:03o}"
            last_octal = True
    return f'"{out}"'


def table(name, cases, function):
    print(f"constexpr TextCase {name}[] = {{")
    for case in cases:
        pair = f"    {{{c_string(case)}, {c_string(function(case))}}},"
        if len(pair) > 100:
            pair = f"    {{{c_string(case)},\n     {c_string(function(case))}}},"
        print(pair)
    print("};\n")


if __name__ == "__main__":
    print(f"// Written by tools/gen_text_golden.py with Python {sys.version.split()[0]}, "
          f"ftfy {ftfy.__version__}.\n// Do not edit.\n")
    table("kCleanCases", CLEAN, clean)
    table("kLiteralCases", LITERALS, instruction)
    table("kLowerCases", LOWER, str.lower)
