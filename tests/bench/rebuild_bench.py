"""cluster.rebuild: a node is lost for good; how fast it is rebuilt, and what reads feel of that meanwhile.

    rebuild_bench.py BUILD_FOLDER [--quick] [--json FILE]

Eight nodes on this machine, stripes of 4+2. Clients read blocks at a set pace, far below what the nodes can do. One
node is killed and its data deleted; the end is when the map has forgotten its target. Then every block is
read and compared, with all that are left and with two more killed. Once for each limit of the rebuild: the default,
which is meant for nodes with a machine each; an eighth of it, so that this machine bears what one of them would; a
64th; and none. Exit code 77 where there is no etcd.
"""
import argparse
import contextlib
import json
import mmap
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

import cluster_bench
from cluster_bench import BLOCK, CHAIN, cairn_lib, figure, keys_of
from local_cluster import LocalCluster, why_no_namespaces

NODES, LOST, AWAY = 8, "8", ("2", "4")
CLIENTS_AT = ("1", "3", "5", "7")
SPACE = {"ttl_seconds": 7200, "fingerprint": b"rebuild", "fingerprint_size": 7, "data_shards": 4, "parity_shards": 2}
GETS_PER_SECOND = 25  # Of each client.
LEASE, LOST_AFTER, PATIENCE = 3, 12, 20
DEFAULT = 256 << 20  # cluster.rebuild_bytes_per_second
LIMITS = {"default": DEFAULT, "shared": DEFAULT // NODES, "gentle": DEFAULT // 64, "unlimited": 0}
METRIC = re.compile(r"^cairn_(repair_running|repair_pass_done_bytes|repair_pass_failed_shards|repair_passes_total"
                    r"|store_shards_restored_total|store_stripes_lacking|store_live_bytes|cluster_groups_filling"
                    r"|cluster_groups_homeless|cluster_(?:nodes|targets)\{state=\"(?:up|lost)\"\}) (\d+)$", re.M)


class Client(cluster_bench.Client):
    """Knows what is in each block: a piece of one random text, another piece for each key."""

    text = random.Random(1).randbytes(2 * BLOCK)

    def __init__(self, library, address):
        super().__init__(library, address, SPACE)

    def content(self, key):
        begin = random.Random(key).randrange(BLOCK)
        return memoryview(self.text)[begin:begin + BLOCK]

    def fill(self, client, chains):
        for chain in range(chains):
            keys = keys_of(client, chain)
            self.put(keys, [self.content(key) for key in keys])

    def check(self, client, chains):
        for chain in range(chains):
            keys = keys_of(client, chain)
            self.get_patiently(keys)
            for index, key in enumerate(keys):
                if self.memory[index * BLOCK:(index + 1) * BLOCK] != self.content(key):
                    raise RuntimeError(f"wrong bytes in {key}")

    def get_patiently(self, keys):
        """Just after a fault a read may fail for a while, as in integration.cluster_faults."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return self.get(keys)
            except (RuntimeError, cairn_lib.Failed):
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def read_one(self, client, chain):
        index = random.randrange(CHAIN)
        chosen = self.store.chain(self.space, keys_of(client, chain))
        (code, size), = self.store.get(chosen, [(index, self.base, BLOCK)])
        if (code, size) != (cairn_lib.OK, BLOCK):
            raise RuntimeError(f"block {client}/{chain}/{index} is not read: {code}")


def in_parallel(work, firsts, *arguments):
    """work(client, *its first arguments, *arguments) in a process for each; none may fail."""
    workers = [multiprocessing.Process(target=work, args=(client, *first, *arguments))
               for client, first in enumerate(firsts)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError(f"{work.__name__} failed")


def fill(client, library, address, chains):
    Client(library, address).fill(client, chains)


def check(client, library, address, chains):
    Client(library, address).check(client, chains)


def read_at_a_pace(client, library, address, chains, ending, results):
    """(when it was due, seconds from then until it was there) of each get, and (when, why) of those that failed."""
    store, took, problems, due = Client(library, address), [], [], time.monotonic()
    while not ending.is_set():
        due += random.expovariate(GETS_PER_SECOND)
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            store.read_one(client, random.randrange(chains))
            took.append((due, time.monotonic() - due))
        except (RuntimeError, cairn_lib.Failed) as failed:
            problems.append((due, str(failed)))
    results.put((took, problems))


class Readers:
    """Read until they are stopped."""

    def __init__(self, firsts, chains):
        self.ending, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.workers = [multiprocessing.Process(target=read_at_a_pace, daemon=True,
                                                args=(client, *first, chains, self.ending, self.results))
                        for client, first in enumerate(firsts)]
        for worker in self.workers:
            worker.start()

    def stop(self):
        """All (when, seconds), and all (when, why it failed)."""
        self.ending.set()
        found = [self.results.get(timeout=120) for _ in self.workers]
        for worker in self.workers:
            worker.join()
        return [get for took, _ in found for get in took], [one for _, problems in found for one in problems]


def print_samples(addresses):
    """Runs in a node's network: a line a sample, until nobody reads it."""
    while True:
        sample = {"at": time.monotonic(), "nodes": {}}
        for address in addresses:
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f"http://{address}:9511/metrics", timeout=2) as page:
                    found = METRIC.findall(page.read().decode())
                    sample["nodes"][address] = {name: int(value) for name, value in found}
        print(json.dumps(sample), flush=True)
        time.sleep(0.5)


class Watch:
    """What the nodes' metrics say, twice a second; they are a second old at most."""

    def __init__(self, cluster):
        rows = cluster.status()
        addresses = [rows[node]["address"] for node in cluster.nodes if node != LOST]
        self.lost_address = rows[LOST]["address"]
        command = cluster.command("exec", "1", sys.executable, __file__, "--watch", *addresses, self.lost_address)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.samples = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_unused):
        self.process.kill()
        self.process.wait()
        self.thread.join()

    def _read(self):
        for line in self.process.stdout:
            self.samples.append(json.loads(line))

    def wait_for(self, done, seconds, what):
        """The first sample from now on of which done(metrics of the nodes that answer) is true."""
        seen, until = len(self.samples), time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            for sample in self.samples[seen:]:
                seen += 1
                if done(list(sample["nodes"].values())):
                    return sample
            time.sleep(0.05)
        raise TimeoutError(f"{what}: {self.samples[-1:]}")


def total(sample, name):
    return sum(node.get(name, 0) for node in sample["nodes"].values())


def moved(samples):
    """Bytes that passes of repair have read and written, of each home."""
    passes, homes = {}, {}
    for sample in samples:
        for address, node in sample["nodes"].items():
            number = node["repair_passes_total"] + node["repair_running"]  # Counted when it ends.
            passes[address, number] = max(passes.get((address, number), 0), node["repair_pass_done_bytes"])
    for (address, _number), count in passes.items():
        homes[address] = homes.get(address, 0) + count
    return list(homes.values())


def is_whole(nodes):
    return len(nodes) == NODES and all(
        node.get('cluster_nodes{state="up"}') == NODES and not node["store_stripes_lacking"]
        and not node["cluster_groups_filling"] and not node["cluster_groups_homeless"] for node in nodes)


def is_rebuilt(nodes):
    """The map has forgotten the target, which every home must have agreed to."""
    return len(nodes) == NODES - 1 and all(
        node.get('cluster_targets{state="up"}') == NODES - 1 and not node.get('cluster_targets{state="lost"}', 0)
        and not node["repair_running"] for node in nodes)


def device_write_rate(folder, seconds):
    """O_DIRECT, 4 MiB at a time by four threads, into files as a target's segments are: only allocated before."""
    size, ending, written = 4 << 20, time.monotonic() + seconds, []

    def write(path):
        room = mmap.mmap(-1, size)
        room.write(random.randbytes(size))
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        os.posix_fallocate(file, 0, 1 << 30)
        began, count = time.monotonic(), 0
        while time.monotonic() < ending:
            count += os.pwrite(file, room, count % (1 << 30))
        written.append(count / (time.monotonic() - began))
        os.close(file)
        path.unlink()

    threads = [threading.Thread(target=write, args=(folder / f"device-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(written)


def p99(gets, begin, end):
    took = sorted(seconds for due, seconds in gets if begin <= due < end)
    if len(took) < 50:
        raise RuntimeError(f"only {len(took)} reads")
    return took[len(took) * 99 // 100]


def busy(before, after):
    """The share of the processors' time that was used, by anybody."""
    spent = [then - now for now, then in zip(before, after)]
    return 1 - (spent[3] + spent[4]) / sum(spent)


def processor_times():
    return [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


def lose_a_node(cluster, watch, firsts, chains, seconds):
    """What happened, as a dictionary."""
    found, readers = {}, Readers(firsts, chains)
    try:
        time.sleep(seconds + 2)
        before = watch.samples[-1]
        found["healthy"] = (time.monotonic() - seconds, time.monotonic())
        killed = time.monotonic()
        cluster("kill", LOST)
        shutil.rmtree(cluster.folder / f"node-{LOST}/data")
        begun = watch.wait_for(lambda nodes: any(node["repair_running"] for node in nodes), LOST_AFTER + 60,
                               "the repair does not begin")
        times, first = processor_times(), len(watch.samples) - 1
        rebuilt = watch.wait_for(is_rebuilt, 900, "the repair does not end")
        samples = watch.samples[first:]
    finally:
        found["gets"], found["problems"] = readers.stop()
    # From the first shard to the last one, without the end's formalities.
    restored = [total(sample, "store_shards_restored_total") for sample in samples]
    last = samples[restored.index(restored[-1])]["at"]
    found |= {"away": (killed + LEASE + 2, begun["at"]), "rebuild": (begun["at"], last),
              "until_begin": begun["at"] - killed, "until_forgotten": rebuilt["at"] - last,
              "lost": before["nodes"][watch.lost_address]["store_live_bytes"],
              "moved": moved(samples), "busy": busy(times, processor_times()),
              "failed": total(rebuilt, "repair_pass_failed_shards")}
    return found


def figures(name, found, limit, device):
    begin, end = found["rebuild"]
    took = end - begin
    rebuilt = sum(found["moved"]) / (SPACE["data_shards"] + 1)  # All but one of the shards that are moved were read.
    healthy = p99(found["gets"], *found["healthy"])
    name = f"cluster.rebuild.{name}"  # The limit is of a home, and the busiest one is the last.
    failures = [why for when, why in found["problems"] if when >= begin]
    if failures:
        print(f"{name}: reads that failed during the rebuild: {sorted(set(failures))}")
    return [figure(f"{name} (device)", rebuilt / took, "B/s", device),
            figure(f"{name} (limit)", max(found["moved"]) / took, "B/s", limit or None),
            figure(f"{name}.bytes", rebuilt, "B", found["lost"]),
            figure(f"{name}.seconds", took, "s"),
            figure(f"{name}.until_begin", found["until_begin"], "s", LOST_AFTER),
            figure(f"{name}.until_forgotten", found["until_forgotten"], "s"),
            figure(f"{name}.p99", p99(found["gets"], begin, end), "s", healthy),
            figure(f"{name}.p99_away", p99(found["gets"], *found["away"]), "s", healthy),
            figure(f"{name}.reads_failed", len(failures), "", len(found["gets"])),
            figure(f"{name}.reads_failed_before", len(found["problems"]) - len(failures), "", len(found["gets"])),
            figure(f"{name}.processors_busy", found["busy"], "")]


def measure(build, name, chains, seconds):
    limit, library = LIMITS[name], build / "kvstore/capi/libcairn.so"
    settings = ("store.target_size=1536 MiB", "memory.block_cache=0", f"cluster.lease={LEASE} s",
                f"cluster.suspect_after={LEASE} s", f"cluster.lost_after={LOST_AFTER} s",
                f"cluster.rebuild_bytes_per_second={limit} B")
    with LocalCluster(build / "kvstore/daemon/cairnd", NODES, *settings, namespaces=not why_no_namespaces()) as cluster:
        firsts = [(library, cluster.connect(node)) for node in CLIENTS_AT]
        with Watch(cluster) as watch:
            in_parallel(fill, firsts, chains)
            watch.wait_for(is_whole, 120, "the cluster is not whole")
            device = device_write_rate(cluster.folder, min(seconds, 5))
            found = lose_a_node(cluster, watch, firsts, chains, seconds)
        if found["failed"]:
            raise RuntimeError(f"{found['failed']} shards are not rebuilt")
        in_parallel(check, firsts, chains)
        cluster("kill", *AWAY)  # Whose shard was on the lost node only bears no third.
        in_parallel(check, firsts, chains)
    return figures(name, found, limit, device)


def main():
    if sys.argv[1:2] == ["--watch"]:
        print_samples(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="1 GiB of blocks instead of 2, the default limit only")
    parser.add_argument("--limit", action="append", choices=list(LIMITS))
    parser.add_argument("--json")
    options = parser.parse_args()
    if shutil.which("etcd") is None:
        print("skipped: etcd is not installed (Debian: etcd-server)")
        sys.exit(77)
    found = []
    for name in options.limit or (["default"] if options.quick else list(LIMITS)):
        figures_of_it = measure(options.build.resolve(), name, 16 if options.quick else 32, 5 if options.quick else 15)
        cluster_bench.show(figures_of_it)
        found += figures_of_it
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
