#!/usr/bin/env python3
"""Tests of the checks in this folder and of the test counter, on small made-up trees."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import check_errors
import check_layers
import check_sizes
import check_text
import run_tests

LISTS = "foreach(folder base graph ops kernels models\n               cli)\nendforeach()\n"


class TreeCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("CMakeLists.txt", LISTS)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def run_check(self, module):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = module.main([str(self.root)])
        return code, output.getvalue()


class ErrorsTest(TreeCase):
    def test_demands_a_remedy(self):
        self.write("wam/a.cc", 'throw DataError({.where = w,\n .what = "bad", .remedy = "Mend it."});\n')
        self.assertEqual(self.run_check(check_errors)[0], 0)
        self.write("wam/b.cc", '\nthrow ConfigError({.where = w, .what = "bad"});\n')
        code, output = self.run_check(check_errors)
        self.assertEqual(code, 1)
        self.assertIn("wam/b.cc:2", output)
        self.assertNotIn("wam/a.cc", output)


class LayersTest(TreeCase):
    def test_downward_includes_pass(self):
        self.write("wam/base/error.h", "#include <string>\n")
        self.write("wam/graph/graph.cc", '#include "wam/base/error.h"\n#include "x.pb.h"\n')
        self.write("wam/graph/CMakeLists.txt", "wam_library(graph DEPS wam_base)\n")
        self.assertEqual(self.run_check(check_layers)[0], 0)

    def test_upward_include_fails(self):
        self.write("wam/base/error.cc", '\n#  include "wam/graph/graph.h"\n')
        code, output = self.run_check(check_layers)
        self.assertEqual(code, 1)
        self.assertIn("wam/base/error.cc:2", output)

    def test_upward_cmake_dependency_fails(self):
        self.write("wam/base/CMakeLists.txt", "wam_library(base # wam_cli\n  DEPS wam_ops)\n")
        code, output = self.run_check(check_layers)
        self.assertEqual(code, 1)
        self.assertIn("wam/base/CMakeLists.txt:2: wam_ops", output)

    def test_kernels_see_the_op_list_but_no_graph(self):
        self.write("wam/kernels/a.cc", '#include "wam/ops/op_list.inc"\n')
        self.assertEqual(self.run_check(check_layers)[0], 0)
        self.write("wam/kernels/a.cc", '#include "wam/graph/graph.h"\n')
        self.assertEqual(self.run_check(check_layers)[0], 1)

    def test_relative_include_and_unknown_folder_fail(self):
        self.write("wam/base/a.cc", '#include "error.h"\n')
        self.write("wam/other/a.cc", "\n")
        code, output = self.run_check(check_layers)
        self.assertEqual(code, 1)
        self.assertIn("2 violations", output)


class TextTest(TreeCase):
    def test_plain_text_passes(self):
        self.write("a.cc", '#include "wam/home/work/x.h"\n// ${dir}/work/x, $OUT/root/y\n')
        self.write("Makefile", "a:\n\tb\n")
        self.assertEqual(self.run_check(check_text)[0], 0)

    def test_each_fault_is_found(self):
        self.write("a.md", "caf\u00e9\n" + "see /" + "home/me/x\n" + "blank \n" + "a\tb\n" + "end")
        code, output = self.run_check(check_text)
        self.assertEqual(code, 1)
        for place in ("a.md:1", "a.md:2", "a.md:3", "a.md:4", "no newline"):
            self.assertIn(place, output)

    def test_binary_is_left_alone(self):
        self.write("data", "a\0\u00e9")
        self.assertEqual(self.run_check(check_text)[0], 0)


class SizesTest(TreeCase):
    def test_long_function_warns_without_failing(self):
        body = "  x();\n" * check_sizes.MAX_FUNCTION_LINES
        self.write("wam/base/a.cc", f"void declared(int a,\n    int b);\n"
                   f"int g() {{ return 1; }}\nclass C {{\n{body}}};\nvoid f() {{\n{body}}}\n")
        code, output = self.run_check(check_sizes)
        self.assertEqual(code, 0)
        self.assertIn("wam/base/a.cc:86: function of 82 lines", output)
        self.assertIn("1 functions", output)


class CountTest(TreeCase):
    CASE = '<testcase name="{0}" classname="S" status="run">{1}</testcase>'

    def tally(self, ctest_cases, gtest_files):
        self.write("junit.xml", f"<testsuite>{''.join(ctest_cases)}</testsuite>")
        for name, cases in gtest_files.items():
            self.write(f"{name}.xml", f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
        return run_tests.count(self.root / "junit.xml", self.root)

    def test_single_tests_are_counted(self):
        cases = (self.CASE.format("A", "") + self.CASE.format("B", "<failure message='x'/>") +
                 self.CASE.format("C", "<skipped message='f.cc:1&#10;no golden'/>"))
        tally = self.tally(['<testcase name="t" status="fail"><failure message=""/></testcase>'],
                           {"t": cases})
        self.assertEqual((tally.passed, len(tally.failed)), (1, 1))
        self.assertEqual(tally.skipped, ["t: S.C: no golden"])

    def test_entries_without_results_count_once(self):
        tally = self.tally(['<testcase name="plain" status="run"/>',
                            '<testcase name="crashed" status="fail"/>',
                            '<testcase name="gone" status="notrun"/>'], {})
        self.assertEqual((tally.passed, len(tally.failed)), (1, 2))

    def test_failure_after_all_tests_passed_counts(self):
        tally = self.tally(['<testcase name="leaky" status="fail"/>'],
                           {"leaky": self.CASE.format("A", "")})
        self.assertEqual((tally.passed, len(tally.failed)), (1, 1))

    def test_truncated_result_file_fails(self):
        self.write("t.xml", "<testsuites><testsui")
        tally = self.tally(['<testcase name="t" status="run"/>'], {})
        self.assertGreaterEqual(len(tally.failed), 1)


if __name__ == "__main__":
    unittest.main()
