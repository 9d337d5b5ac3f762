"""The same seed gives the same trace hash under every compiler; other seeds give other hashes.

Usage: determinism_test.py SOURCE_FOLDER RELEASE_ECHO_SIM PRESET
PRESET names the second build (asan: g++ -O0 with ASan and UBSan; clang: clang++-14). Only the
echo_sim target is built in it. Exit code 77 (skipped) when its compiler is missing.
"""
import shutil
import subprocess
import sys

SEEDS = (1, 2, 3, 4, 5, 6)


def lines_of(binary):
    return [subprocess.run([binary, "--seed", str(seed)], check=True, capture_output=True,
                           text=True).stdout for seed in SEEDS]


def build(source, preset):
    for command in (["cmake", "--preset", preset], ["cmake", "--build", "--preset", preset,
                                                    "--target", "echo_sim"]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return f"{source}/build/{preset}/tests/sim/echo_sim"


def main():
    source, release, preset = sys.argv[1:]
    if preset == "clang" and shutil.which("clang++-14") is None:
        print("skipped: clang++-14 is not installed, so its trace hashes were not compared")
        return 77
    expected = lines_of(release)
    print("".join(expected), end="")
    if lines_of(release) != expected:
        sys.exit("the release build differs from itself on the same seed")
    if len({line.split(" hash ")[1] for line in expected}) != len(SEEDS):
        sys.exit("different seeds gave the same hash")
    other = lines_of(build(source, preset))
    if other != expected:
        sys.exit(f"{preset} differs from release:\n{''.join(other)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
