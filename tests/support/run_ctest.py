"""Runs ctest in the given build folders and prints one closing line of counts.

Usage: run_ctest.py BUILD_FOLDER [CTEST_ARGUMENT...]
Exit code 1 when a test failed or none ran. Skipped tests are named.
"""
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree


def run(folder, arguments):
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        subprocess.run(
            ["ctest", "--test-dir", folder, "-j2", "--output-on-failure", "--progress",
             "--no-tests=error", "--output-junit", report.name, *arguments], check=False)
        return ElementTree.parse(report.name).getroot().iter("testcase")


def main():
    passed, failed, skipped = 0, [], []
    for case in run(sys.argv[1], sys.argv[2:]):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled") or case.find("skipped") is not None:
            skipped.append(case)
        else:
            failed.append(case)
    for case in skipped:
        reason = case.find("skipped")
        print("skipped:", case.get("name"), "-", (reason.get("message") if reason is not None else ""))
    for case in failed:
        print("FAILED:", case.get("name"))
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
