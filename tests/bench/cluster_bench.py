"""cluster.*: reads from twelve nodes on this machine, with all of them and with two away.

    cluster_bench.py BUILD_FOLDER [--quick] [--json FILE]

Each client is a process at a node of its own, reads chains in random order, and checks nothing but
sizes (the nodes check every byte). Beside it, in the same run: the same bytes read from the targets' files
by as many processes (O_DIRECT), and sent over as many bare loopback connections.
"""
import argparse
import json
import mmap
import multiprocessing
import os
import pathlib
import random
import socket
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import cairn_lib  # noqa: E402  pylint: disable=wrong-import-position
from local_cluster import LocalCluster, why_no_namespaces  # noqa: E402  pylint: disable=wrong-import-position

NODES, AWAY = 12, ("5", "9")
CLIENTS_AT = ("1", "4", "7", "10")
BLOCK, CHAIN = 1 << 20, 16
SPACE = {"ttl_seconds": 3600, "fingerprint": b"bench", "fingerprint_size": 5, "data_shards": 10, "parity_shards": 2}


def keys_of(client, chain):
    return [f"{client}/{chain}/{index}".encode() for index in range(CHAIN)]


class Client:
    def __init__(self, library, address, space=None):
        self.store = cairn_lib.Store(library, address, call_timeout_ms=60_000)
        self.space = self.store.attach("bench", **(space or SPACE))
        self.base, self.memory = self.store.region(BLOCK * CHAIN)
        self.places = [(self.base + index * BLOCK, BLOCK) for index in range(CHAIN)]

    def put(self, keys, contents=None):
        for index in range(CHAIN):
            self.memory[index * BLOCK:(index + 1) * BLOCK] = contents[index] if contents else random.randbytes(BLOCK)
        until = time.monotonic() + 60
        while True:
            try:
                return self.store.put(self.store.chain(self.space, keys), 0, self.places)
            except cairn_lib.Failed:
                if time.monotonic() > until:
                    raise

    def get(self, keys):
        """Seconds it took."""
        began = time.monotonic()
        results, said = self.store.read(self.store.chain(self.space, keys), self.places, 60_000)
        if any(result != (cairn_lib.OK, BLOCK) for result in results):
            raise RuntimeError(f"a block is not read: {results} {said}")
        return time.monotonic() - began


def fill(library, address, client, chains):
    store = Client(library, address)
    for chain in range(chains):
        store.put(keys_of(client, chain))


def read(library, address, client, chains, seconds, start, results):
    store = Client(library, address)
    start.wait()
    began, took = time.monotonic(), []
    while time.monotonic() - began < seconds:
        took.append(store.get(keys_of(client, random.randrange(chains))))
    results.put((len(took) * CHAIN * BLOCK, time.monotonic() - began, time.process_time(), took))


def read_files(files, _client, _chains, seconds, start, results):
    """The share of a chain that each target has, at random places."""
    share = BLOCK * CHAIN // 10
    room = mmap.mmap(-1, share)
    opened = [os.open(file, os.O_RDONLY | os.O_DIRECT) for file in files]
    start.wait()
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        file = random.choice(opened)
        at = random.randrange(os.fstat(file).st_size // 2 // share) * share // 4096 * 4096
        count += os.preadv(file, [memoryview(room)[:share // 4096 * 4096]], at)
    results.put((count, time.monotonic() - began, time.process_time(), []))


def copy_sockets(_unused, _client, _chains, seconds, start, results):
    server = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        sender = socket.create_connection(server.getsockname())
        data = random.randbytes(BLOCK)
        try:
            while True:
                sender.sendall(data)
        except OSError:
            os._exit(0)
    receiver = server.accept()[0]
    room = bytearray(BLOCK)
    start.wait()
    began, count = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        count += receiver.recv_into(room, BLOCK)
    results.put((count, time.monotonic() - began, time.process_time(), []))
    receiver.close()


def together(work, firsts, chains, seconds):
    """(bytes a second of all, their CPU seconds, bytes, sorted times of calls)."""
    start, results = multiprocessing.Barrier(len(firsts)), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(*first, client, chains, seconds, start, results))
               for client, first in enumerate(firsts)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=seconds * 4 + 120) for _ in workers]
    for worker in workers:
        worker.join()
    return (sum(count / took for count, took, _, _ in found), sum(cpu for _, _, cpu, _ in found),
            sum(count for count, _, _, _ in found), sorted(took for *_, all_took in found for took in all_took))


def cpu_of(cluster):
    """CPU seconds of all nodes."""
    total = 0
    for node, row in cluster.status().items():
        if node != "etcd" and row["pid"]:
            words = pathlib.Path(f"/proc/{row['pid']}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(words[11]) + int(words[12])
    return total / os.sysconf("SC_CLK_TCK")


def figure(name, value, unit, baseline=None):
    return {"name": name, "value": value, "unit": unit, "baseline": baseline,
            "ratio": value / baseline if baseline else None}


def measure(name, cluster, firsts, chains, seconds, limits):
    before = cpu_of(cluster)
    rate, cpu, count, took = together(read, firsts, chains, seconds)
    nodes = cpu_of(cluster) - before
    return [figure(f"{name} (device)", rate, "B/s", limits["device"]),
            figure(f"{name} (loopback)", rate, "B/s", limits["loopback"]),
            figure(f"{name}.p99", took[len(took) * 99 // 100], "s"),
            figure(f"{name}.cpu_nodes", nodes / count * 1e9, "s/GB"),
            figure(f"{name}.cpu_clients", cpu / count * 1e9, "s/GB")]


def bench(build, quick):
    library, seconds, chains = build / "kvstore/capi/libcairn.so", 3 if quick else 10, 2 if quick else 8
    with LocalCluster(build / "kvstore/daemon/cairnd", NODES, "store.target_size=256 MiB", "memory.block_cache=0",
                      namespaces=not why_no_namespaces()) as cluster:
        firsts = [(library, cluster.connect(node)) for node in CLIENTS_AT]
        for client, first in enumerate(firsts):
            fill(*first, client, chains)
        files = [(sorted(cluster.folder.glob("node-*/data/target-00/segments")),)] * len(CLIENTS_AT)
        limits = {"device": together(read_files, files, chains, seconds)[0],
                  "loopback": together(copy_sockets, [(None,)] * len(CLIENTS_AT), chains, seconds)[0]}
        found = measure("cluster.get", cluster, firsts, chains, seconds, limits)
        cluster("kill", *AWAY)
        found += measure("cluster.get_degraded", cluster, firsts, chains, seconds, limits)
        found.append(figure("cluster.get_degraded.of_healthy", found[5]["value"], "B/s", found[0]["value"]))
    return found


def show(found):
    for one in found:
        ratio = f"   {one['ratio']:.2f} of {one['baseline']:.4g}" if one["ratio"] else ""
        print(f"  {one['name']:<40} {one['value']:10.4g} {one['unit']:<6}{ratio}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    found = bench(options.build.resolve(), options.quick)
    show(found)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
