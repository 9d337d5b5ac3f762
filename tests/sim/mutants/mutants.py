"""Every mutant of mutants.txt must make its test fail: the tests can see what the checks are for.

Usage: mutants.py SOURCE_FOLDER BUILD_FOLDER [WORDS OF A NAME]
One source is changed by sed and compiled as the build compiles it; the test is linked with that
object in front of the libraries, which then need not give theirs.
"""
import os
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
                                  check=False, timeout=300)
        except subprocess.TimeoutExpired:
            return None  # It hangs: caught as well.
        if "0 tests from 0" in done.stdout:
            return "its filter names no test"
        return "survives" if done.returncode == 0 else None


def main():
    source, build, *words = sys.argv[1:]
    failed = 0
    table = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mutants.txt")
    for row in read_table(table):
        if words and " ".join(words) not in row[0]:
            continue
        problem = verdict(source, build, row)
        print(f"{'FAILED' if problem else 'caught'}: without '{row[0]}'"
              + (f": {problem}" if problem else ""), flush=True)
        failed += problem is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
