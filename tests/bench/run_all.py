"""Runs the benchmark programs of a build folder and joins their figures.

    run_all.py BUILD_FOLDER [--quick] [--json FILE]

Every figure is {name, value, unit, baseline, ratio}; the baseline is a limit or a rival of the same
run, null where it is absent, and what is absent is said by name.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]


class Runner:
    def __init__(self, build, quick):
        self.build, self.quick = pathlib.Path(build), ["--quick"] if quick else []
        self.rounds = "1" if quick else "3"
        self.figures, self.absent = [], []

    def run(self, title, command):
        """The figures that a program wrote to the file behind --json."""
        print(f"\n== {title}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "figures.json"
            subprocess.run([*map(str, command), "--json", str(report)], check=True)
            found = json.loads(report.read_text())
        self.figures += found
        return found

    def erasure(self):
        print("\n== erasure", flush=True)
        output = subprocess.run([self.build / "tests/bench/erasure_bench", "--json", *self.quick],
                                check=True, capture_output=True, text=True).stdout
        found = json.loads(output)
        self.figures += found
        show(found)

    def store(self):
        show(self.run("store", [self.build / "tests/bench/store_bench", *self.quick]))
        self.run("load estimates", [self.build / "tests/bench/load_estimate_bench", *self.quick])
        show(self.run("store, served", [self.build / "tests/bench/serve_bench", *self.quick]))
        show(self.run("targets of other nodes", [self.build / "tests/bench/peer_bench", *self.quick]))

    def cluster(self):
        if shutil.which("etcd"):
            self.run("cluster", [sys.executable, HERE / "cluster_bench.py", self.build, *self.quick])
            self.run("cluster, a node lost", [sys.executable, HERE / "rebuild_bench.py", self.build, *self.quick])
        else:
            self.absent.append("etcd (Debian: etcd-server): cluster.*")

    def index(self):
        show(self.run("index", [self.build / "tests/bench/index_bench", *self.quick]))

    def planner(self):
        self.run("planner", [self.build / "tests/bench/planner_bench", *self.quick])

    def engine(self, model):
        python = TOP / "build" / "bench-venv" / "bin" / "python"
        baseline = []
        python = str(python) if python.exists() else os.environ.get("CAIRN_BENCH_PYTHON", sys.executable)
        rival = subprocess.run([python, HERE / "llama_cpp_baseline.py", model, *self.quick],
                               capture_output=True, text=True, check=False)
        if rival.returncode == 0:
            speeds = json.loads(rival.stdout.strip().splitlines()[-1])
            baseline = ["--baseline-prefill", speeds["prefill"], "--baseline-decode", speeds["decode"]]
        else:
            self.absent.append("llama.cpp (pip install llama-cpp-python; CAIRN_BENCH_PYTHON names its python)")
        show(self.run("engine", [self.build / "tests/bench/engine_bench", "--model", model,
                                 *self.quick, *baseline]))

    def ttft(self, model):
        show(self.run("time to first token", [sys.executable, HERE / "ttft.py",
                                              self.build / "tools/cairn/cairn", model,
                                              "--rounds", self.rounds]))


def show(figures):
    for figure in figures:
        baseline, ratio = figure.get("baseline"), figure.get("ratio")
        against = f"   {ratio:6.2f} of {baseline:.4g}" if baseline and ratio is not None else ""
        print(f"  {figure['name']:<44} {figure['value']:10.4g} {figure['unit']:<10}{against}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    runner = Runner(options.build, options.quick)
    runner.erasure()
    runner.store()
    runner.cluster()
    runner.index()
    runner.planner()
    found = subprocess.run([TOP / "deploy" / "fetch-model"], capture_output=True, text=True, check=False)
    model = os.environ.get("CAIRN_MODEL") or found.stdout.strip()
    if model:
        runner.engine(model)
        runner.ttft(model)
    else:
        runner.absent.append("a real model (deploy/fetch-model): engine.*, ttft.*")
    for name in runner.absent:
        print("absent:", name)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(runner.figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
