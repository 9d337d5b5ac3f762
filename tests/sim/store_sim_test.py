"""Runs the whole-store simulation over fixed seeds and over one that is the commit's own.

Usage: store_sim_test.py SOURCE_FOLDER STORE_SIM MODE COUNT
Seeds run in parallel processes. Also: the same seed twice gives the same trace hash, another seed
another one. A seed that fails is named with the command that runs it again.
"""
import concurrent.futures
import os
import subprocess
import sys

CHUNK = {"within": 20, "beyond": 20, "full": 5, "crash": 1}
SEED_OUTSIDE_GIT = 20261129


def run(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, (f"store_sim {' '.join(words)} exits with {done.returncode}:\n"
                      f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, None


def run_or_exit(binary, *words):
    output, problem = run(binary, *words)
    if problem:
        sys.exit(problem)
    return output


def hash_of(binary, mode, seed):
    line = run_or_exit(binary, "--mode", mode, "--first", str(seed), "--verbose")
    return line.split(" hash ")[1].split()[0]


def commit_seed(source):
    """A new seed for each commit, and the same again for the same commit."""
    done = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False)
    return int(done.stdout[:12], 16) if done.returncode == 0 else SEED_OUTSIDE_GIT


def main():
    source, binary, mode, count = sys.argv[1:]
    count = int(count)
    own = commit_seed(source)
    if mode != "crash":  # A sweep takes long; its runs are the others' code.
        if hash_of(binary, mode, 1) != hash_of(binary, mode, 1):
            sys.exit("seed 1 twice gives two traces")
        if hash_of(binary, mode, 1) == hash_of(binary, mode, 2):
            sys.exit("seeds 1 and 2 give one trace")
    chunk = CHUNK[mode]
    jobs = [(first, min(chunk, count + 1 - first)) for first in range(1, count + 1, chunk)]
    jobs.append((own, 1))
    problems = []
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        calls = [pool.submit(run, binary, "--mode", mode, "--first", str(first), "--count",
                             str(seeds)) for first, seeds in jobs]
        problems = [problem for _, problem in (call.result() for call in calls) if problem]
    if problems:
        sys.exit("\n".join(problems[:5]) + f"\n{len(problems)} of {len(jobs)} runs fail")
    print(f"{count} seeds of mode {mode}, and the commit's own: {own}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
