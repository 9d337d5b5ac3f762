"""Runs stack_test.py with the tiny model, or with the real one; exit code 77 when that is absent.

Usage: run_stack_test.py CAIRN_BINARY tiny|real
"""
import os
import pathlib
import subprocess
import sys

DEFAULT = "~/.cache/cairn/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def main():
    binary, kind = sys.argv[1:3]
    model, cases = "tiny", []
    if kind == "real":
        model = os.path.expanduser(os.environ.get("CAIRN_MODEL", DEFAULT))
        cases = ["GreedyTextIsTheSame"]
        if not os.path.exists(model):
            print(f"skipped: no real model at {model} (deploy/fetch-model)")
            return 77
    test = pathlib.Path(__file__).with_name("stack_test.py")
    return subprocess.run([sys.executable, test, binary, model, *cases], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
