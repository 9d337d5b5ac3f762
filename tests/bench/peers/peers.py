"""Cairn beside other key-value stores on this machine: the same values, the same batches, the same check.

    peers.py --build FOLDER [--folder DATA_FOLDER] [--megabytes N] [--json FILE]

One client process puts values of 256 KiB and 4 MiB in batches of 4 MiB (16 MiB for the large ones),
then gets all of them in another order. Every value got is compared by XXH3-64 in the client. What a
rival does not do is stated: redundancy and medium stand beside each figure. A rival whose package is
absent is named. Python and its packages: tests/bench/peers/requirements.txt.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import xxhash

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cairn_store  # noqa: E402  pylint: disable=wrong-import-position
import rivals  # noqa: E402  pylint: disable=wrong-import-position

SIZES = {"256KiB": (256 << 10, 16), "4MiB": (4 << 20, 4)}
ROUNDS = 3


def batches(order, size):
    return [order[i:i + size] for i in range(0, len(order), size)]


def measure(store, size, batch, count):
    """MB/s of puts, and of each round of gets; every value is checked."""
    values = [os.urandom(size) for _ in range(count)]
    sums = [xxhash.xxh3_64_intdigest(value) for value in values]
    if hasattr(store, "prepare"):
        store.prepare(batch, size)
    began = time.perf_counter()
    for names in batches(list(range(count)), batch):
        store.put([str(name) for name in names], [values[name] for name in names])
    put = count * size / (time.perf_counter() - began) / 1e6
    gets = []
    order = list(range(count))
    for seed in range(ROUNDS):
        random.Random(seed).shuffle(order)
        began = time.perf_counter()
        for names in batches(order, batch):
            got = store.get([str(name) for name in names])
            for name, value in zip(names, got):
                if value is None or xxhash.xxh3_64_intdigest(value) != sums[name]:
                    raise RuntimeError(f"{store.name}: value {name} is {'missing' if value is None else 'wrong'}")
            if hasattr(store, "release_batch"):
                store.release_batch()
        gets.append(count * size / (time.perf_counter() - began) / 1e6)
    if hasattr(store, "release"):
        store.release()
    return put, statistics.median(gets)


def contenders(build, capacity):
    """Name, and how to start it in a folder."""
    yield "cairn.ssd", lambda folder: cairn_store.Cairn(folder, build, capacity, medium="ssd")
    yield "cairn.memory", lambda folder: cairn_store.Cairn(folder, build, capacity, medium="memory")
    yield "redis.unix", lambda folder: rivals.Redis(folder, "unix")
    yield "redis.tcp", lambda folder: rivals.Redis(folder, "tcp")
    yield "mooncake.tcp", lambda folder: rivals.Mooncake(folder, capacity)
    yield "lmcache.disk", lambda folder: rivals.LmCache(folder, capacity)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    figures = []
    baseline = {}
    for size_name, (size, batch) in SIZES.items():
        count = (options.megabytes << 20) // size
        for name, start in contenders(pathlib.Path(options.build), 2 * options.megabytes << 20):
            if options.only and not name.startswith(options.only):
                continue
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                try:
                    store = start(folder)
                except (ImportError, FileNotFoundError) as absent:  # No package, or no server program.
                    print(f"absent: {name}: {absent}")
                    continue
                try:
                    put, get = measure(store, size, batch, count)
                finally:
                    store.stop()
            for verb, rate in (("put", put), ("get", get)):
                baseline.setdefault((verb, size_name), rate)
                figures.append({"name": f"peers.{verb}.{size_name}.{name}", "value": rate, "unit": "MB/s",
                                "baseline": baseline[verb, size_name],
                                "ratio": baseline[verb, size_name] / rate})
                print(f"  peers.{verb}.{size_name:<7}{name:<14}{rate:9.0f} MB/s   cairn.ssd is "
                      f"{baseline[verb, size_name] / rate:5.2f} of it   {store.medium}; {store.redundancy}", flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
