#!/usr/bin/env python3
"""Runs a build tree's tests with CTest and counts individual GoogleTest tests.

usage: tools/run_tests.py BUILD_DIR [CTEST_ARGUMENT...]      e.g. build -L golden

Prints CTest's own progress, then every skipped test with its reason, every failed one, and last a
plain line `N passed, N failed, N skipped`. A CTest entry that is no GoogleTest binary, or that died
before it could write its results, counts as one test. Exit code 0 only if something passed and
nothing failed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = []  # names, with the reason where there is one
        self.skipped = []

    def add_gtest_file(self, path):
        """Counts one GoogleTest result file; returns how many of its tests failed."""
        failures = 0
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = f"{path.stem}: {case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if case.find("failure") is not None:
                failures += 1
                self.failed.append(name)
            elif skip is not None or case.get("status") == "notrun":
                self.skipped.append(f"{name}: {skip_reason(skip)}")
            else:
                self.passed += 1
        return failures


def skip_reason(skip):
    """The message of GTEST_SKIP() without the file and line that GoogleTest puts before it."""
    if skip is None:
        return "disabled in the source"
    text = (skip.get("message") or skip.text or "").strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and ".cc:" in lines[0]:
        lines = lines[1:]
    return " ".join(lines) or "no reason given"


def run_ctest(build_dir, xml_dir, junit_path, arguments):
    environment = dict(os.environ, WAM_TEST_XML_DIR=str(xml_dir))
    for name in ("WAM_GOLDEN_DIR", "WAM_DATA_DIR"):
        if environment.get(name):  # CTest changes the working directory
            environment[name] = os.path.abspath(environment[name])
    command = ["ctest", "--test-dir", str(build_dir), "--output-on-failure", "--no-tests=error",
               "--output-junit", str(junit_path)]
    if not any(argument.startswith(("-j", "--parallel")) for argument in arguments):
        command.append(f"-j{min(2, os.cpu_count() or 1)}")
    print("tests:", " ".join(command + arguments), flush=True)
    return subprocess.run(command + arguments, env=environment, check=False).returncode


def count(junit_path, xml_dir):
    """Merges CTest's verdict on each entry with the GoogleTest file it left, if any."""
    tally = Tally()
    for case in ElementTree.parse(junit_path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        path = xml_dir / f"{name}.xml"
        try:
            failures = tally.add_gtest_file(path) if path.exists() else None
        except ElementTree.ParseError:
            failures = None
            tally.failed.append(f"{name}: its result file cannot be parsed")
        if status in ("notrun", "disabled"):
            # CTest says "notrun" both for a missing binary and for its own skip rules.
            reason = case.find("skipped")
            missing = reason is None or "Unable to find" in (reason.get("message") or "")
            target = tally.failed if missing and status == "notrun" else tally.skipped
            target.append(f"{name}: {reason.get('message') if reason is not None else status}")
        elif status == "fail" and not failures:
            failure = case.find("failure")
            why = failure.get("message") if failure is not None else ""
            tally.failed.append(f"{name}: {why or 'ended abnormally'}")
        elif status == "run" and failures is None:
            tally.passed += 1
    return tally


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    build_dir = pathlib.Path(arguments[0]).resolve()
    if not (build_dir / "CTestTestfile.cmake").exists():
        print(f"tests: error: {build_dir} is no build tree with tests. Run make build first.",
              file=sys.stderr)
        return 2
    xml_dir = build_dir / "test_results"
    shutil.rmtree(xml_dir, ignore_errors=True)
    xml_dir.mkdir()
    junit_path = xml_dir / "ctest_junit.xml"
    code = run_ctest(build_dir, xml_dir, junit_path, arguments[1:])
    if not junit_path.exists():
        print(f"tests: error: ctest (exit code {code}) left no results", file=sys.stderr)
        return 1
    tally = count(junit_path, xml_dir)
    for title, names in (("skipped", tally.skipped), ("FAILED", tally.failed)):
        for name in names:
            print(f"{title}: {name}")
    if code != 0 and not tally.failed:
        tally.failed.append("ctest")
        print(f"FAILED: ctest ended with exit code {code}")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped",
          flush=True)
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
