"""Runs the whole-store simulation over fixed seeds and over one that is the commit's own.

Usage: store_sim_test.py SOURCE_FOLDER STORE_SIM MODE COUNT
Also: the same seed twice gives the same trace hash, another seed another one.
"""
import subprocess
import sys


def run(binary, *words):
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"store_sim {' '.join(words)} exits with {done.returncode}:\n"
                 f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def hash_of(binary, mode, seed):
    line = run(binary, "--mode", mode, "--first", str(seed), "--verbose")
    return line.split(" hash ")[1].split()[0]


def commit_seed(source):
    done = subprocess.run(["git", "-C", source, "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False)
    return int(done.stdout[:12], 16) if done.returncode == 0 else None


def main():
    source, binary, mode, count = sys.argv[1:]
    run(binary, "--mode", mode, "--first", "1", "--count", count)
    if hash_of(binary, mode, 1) != hash_of(binary, mode, 1):
        sys.exit("seed 1 twice gives two traces")
    if hash_of(binary, mode, 1) == hash_of(binary, mode, 2):
        sys.exit("seeds 1 and 2 give one trace")
    seed = commit_seed(source)
    if seed is None:
        print("no commit at hand: fixed seeds only")
    else:
        run(binary, "--mode", mode, "--first", str(seed))
    print(f"{count} seeds of mode {mode}, and the commit's own: {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
