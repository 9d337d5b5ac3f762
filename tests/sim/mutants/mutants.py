"""Every mutant of mutants.txt must make its test fail: the tests can see what the checks are for.

Usage: mutants.py SOURCE_FOLDER BUILD_FOLDER [--some N | WORDS OF A NAME]
--some N runs N of them, others for each commit: CI comes by all of them in a few commits.
One source is changed by sed and compiled as the build compiles it; the test is linked with that
object in front of the libraries, which then need not give theirs.
"""
import os
import random
import shlex
import subprocess
import sys
import tempfile


def read_table(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    for line in lines:
        # The expression may hold bars of its own ("||"), so cut at both ends.
        name, file_name, rest = line.split(" | ", 2)
        expression, target, tests = rest.rsplit(" | ", 2)
        yield name.strip(), file_name.strip(), expression.strip(), target.strip(), tests.strip()


def commands_of(build, target):
    done = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True,
                          capture_output=True, text=True)
    return done.stdout.splitlines()


def words_of(command, output):
    """The compiler's words in a ninja command, writing to `output`."""
    words = [word for part in command.split("&&") for word in shlex.split(part)
             if " -o " in part]
    words = [word for word in words if os.path.basename(word) != "ccache"]
    words[words.index("-o") + 1] = output
    return words


def mutate(source, build, folder, file_name, expression, target):
    """The mutant's program, or what went wrong."""
    original = f"{source}/{file_name}"
    mutated = f"{folder}/{os.path.basename(file_name)}"
    with open(original, encoding="utf-8") as file:
        before = file.read()
    after = subprocess.run(["sed", "-e", expression], input=before, check=True,
                           capture_output=True, text=True).stdout
    if after == before:
        return None, "its sed expression changes nothing"
    with open(mutated, "w", encoding="utf-8") as file:
        file.write(after)
    commands = commands_of(build, target)
    compiles = [line for line in commands if f"-c {original}" in line]
    links = [line for line in commands if " -o " in line and " -c " not in line
             and line.split(" -o ")[1].split()[0].endswith(f"/{target}")]
    if len(compiles) != 1 or len(links) != 1:
        return None, f"the build has no single command for {file_name} and {target}"
    compiled = words_of(compiles[0].replace(f"-c {original}", f"-c {mutated}"), f"{folder}/mutant.o")
    compiled = [word for word in compiled if word not in ("-MD", "-Werror")]
    for flag in ("-MT", "-MF"):
        at = compiled.index(flag)
        del compiled[at:at + 2]
    linked = words_of(links[0], f"{folder}/mutant")
    linked.insert(linked.index("-o"), f"{folder}/mutant.o")
    for words in (compiled, linked):
        done = subprocess.run(words, cwd=build, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, "does not build:\n" + done.stderr[:2000]
    return f"{folder}/mutant", None


def reason_of(output):
    """The line in which the test says what it saw."""
    lines = output.splitlines()
    for word in ("FAILS:", "hangs", ": Failure", "check failed", "[  FAILED  ]"):
        for line in lines:
            if word in line:
                return line.strip()[:160]
    return lines[-1].strip()[:160] if lines else "it says nothing"


def verdict(source, build, row):
    """What is wrong with the tests, or None when they caught the mutant."""
    _, file_name, expression, target, tests = row
    with tempfile.TemporaryDirectory() as folder:
        program, problem = mutate(source, build, folder, file_name, expression, target)
        if problem:
            return problem
        try:
            arguments = tests.split() if tests.startswith("--") else [
                f"--gtest_filter={tests}", "--gtest_fail_fast"]
            done = subprocess.run([program, *arguments], capture_output=True, text=True,
                                  check=False, timeout=900)
        except subprocess.TimeoutExpired:
            # A hang is caught as well; but the simulation finds hangs by its own clock.
            return "takes too long to tell" if tests.startswith("--") else None
        if "0 tests from 0" in done.stdout:
            return "its filter names no test"
        if done.returncode != 0:
            print("  " + reason_of(done.stdout + done.stderr))
        return "survives" if done.returncode == 0 else None


def chosen(source, rows, words):
    if not words or words[0] != "--some":
        return [row for row in rows if " ".join(words) in row[0]]
    done = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False)
    seed = int(done.stdout[:12], 16) if done.returncode == 0 else 0
    return random.Random(seed).sample(rows, min(int(words[1]), len(rows)))


def main():
    source, build = (os.path.abspath(folder) for folder in sys.argv[1:3])
    words = sys.argv[3:]
    failed = 0
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants.txt")
    rows = chosen(source, list(read_table(table)), words)
    if not rows:
        sys.exit("no mutant has that name")
    for row in rows:
        problem = verdict(source, build, row)
        print(f"{'FAILED' if problem else 'caught'}: without '{row[0]}'"
              + (f": {problem}" if problem else ""), flush=True)
        failed += problem is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
