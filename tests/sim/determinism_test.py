"""The same seed gives the same trace hash under every compiler; other seeds give other hashes.

Usage: determinism_test.py SOURCE_FOLDER RELEASE_ECHO_SIM RELEASE_STORE_SIM PRESET
PRESET names the second build (asan: g++ -O0 with ASan and UBSan; clang: clang++-14). Only the two
simulators are built in it. Exit code 77 (skipped) when its compiler is missing.
"""
import shutil
import subprocess
import sys

ECHO_RUNS = [["--seed", str(seed)] for seed in (1, 2, 3, 4, 5, 6)]
STORE_RUNS = [["--verbose", "--mode", mode, "--first", str(seed)] for mode, seed in (
    ("within", 1), ("within", 2), ("within", 3), ("within", 4), ("within", 5), ("beyond", 1),
    ("beyond", 2), ("full", 1))] + [
    ["--verbose", "--mode", "crash", "--first", "1", "--write", "20", *more]
    for more in ([], ["--power"])]


def lines_of(binary, runs):
    return [subprocess.run([binary, *words], check=True, capture_output=True, text=True).stdout
            for words in runs]


def build(source, preset):
    for command in (["cmake", "--preset", preset],
                    ["cmake", "--build", "--preset", preset, "--target", "echo_sim", "store_sim"]):
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return f"{source}/build/{preset}/tests/sim"


def main():
    source, echo, store, preset = sys.argv[1:]
    if preset == "clang" and shutil.which("clang++-14") is None:
        print("skipped: clang++-14 is not installed, so its trace hashes were not compared")
        return 77
    other = build(source, preset)
    for release, name, runs in ((echo, "echo_sim", ECHO_RUNS), (store, "store_sim", STORE_RUNS)):
        expected = lines_of(release, runs)
        print("".join(expected), end="")
        if lines_of(release, runs) != expected:
            sys.exit(f"the release build of {name} differs from itself on the same seed")
        if len({line.split(" hash ")[1] for line in expected}) != len(runs):
            sys.exit(f"different seeds gave the same hash in {name}")
        found = lines_of(f"{other}/{name}", runs)
        if found != expected:
            sys.exit(f"{name} of {preset} differs from release:\n{''.join(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
