"""Builds one fuzzer with clang++-14 and runs it from a fixed seed, for a fixed number of inputs.

Usage: fuzz.py SOURCE_FOLDER BUILD_FOLDER NAME RUNS SOURCE... -- LIBRARY...
First it runs what tests/fuzz/corpus/NAME keeps: seeds, and inputs that once broke something.
Exit code 77 (skipped) when clang++-14 is missing. What it found last lies in BUILD_FOLDER/NAME.corpus.
"""
import os
import shutil
import subprocess
import sys


def main():
    source, build, name, runs, *rest = sys.argv[1:]
    files, libraries = rest[:rest.index("--")], rest[rest.index("--") + 1:]
    compiler = shutil.which("clang++-14")
    if compiler is None:
        print(f"skipped: clang++-14 is not installed, so {name} was not fuzzed")
        return 77
    program, corpus = f"{build}/{name}", f"{build}/{name}.corpus"
    os.makedirs(corpus, exist_ok=True)
    subprocess.run([compiler, "-std=c++20", "-O1", "-g1", "-fsanitize=fuzzer,address,undefined",
                    "-fno-sanitize=vptr", "-fno-sanitize-recover=all", f"-I{source}",
                    *[f"{source}/{file}" for file in files], *libraries, "-o", program], check=True)
    kept = [folder for folder in [f"{source}/tests/fuzz/corpus/{name}"] if os.path.isdir(folder)]
    done = subprocess.run([program, corpus, *kept, f"-runs={runs}", "-max_total_time=60", "-seed=1", "-max_len=8192",
                           "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={build}/"],
                          check=False)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
