"""Twelve nodes and etcd under clients at several of them, while nodes, links and disks break: all that is
owed is read, exact; nothing hangs. In network namespaces, or on loopback where those are not permitted.

Usage: cluster_test.py CAIRND LIBCAIRN [unittest arguments]
"""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

import history
from fault_proxy import FaultProxy
from history_load import Load, Space, percentile
from local_cluster import LocalCluster, loopback_network, why_no_namespaces

NO_NAMESPACES = why_no_namespaces()
NODES = 12
RESTARTED = int(os.environ.get("CLUSTER_RESTARTED", "3"))  # Of the twelve, one after another.
WORK = int(os.environ.get("CLUSTER_WORK", "1"))  # Times as many operations under each fault: percentiles of more.
BUDGET = 2
PROXIED = "12"        # Its neighbours reach it through a proxy.
CLIENTS_AT = ("1", "4", "7", "10")
FAIL_OVER = 10.0      # Seconds after a fault in which a read may fail; in which puts wait for a new home.
# A client waits 2 s more for a node that may still write into its memory (kvstore/remote).
RULES = history.Rules(budget=BUDGET, patience=FAIL_OVER, late=2.5)
SPACES = (Space("faults", puts=({}, {"durable": 1}), data_shards=10, parity_shards=2),)
# Twice what all clients put meanwhile: nothing may be evicted, as a miss would not tell it from a loss.
SETTINGS = ("store.target_size=512 MiB", "cluster.lease=3 s", "cluster.slow_after=1 s")


def settle(cluster, timeout=120, **also):
    """Until each node knows that all are up, and that all index groups are led and whole, and these metrics."""
    wanted = {'nodes{state="up"}': NODES, "groups_homeless": 0, "groups_filling": 0, **also}
    until = time.monotonic() + timeout
    while True:
        seen = {}
        for node, row in cluster.status().items():
            if node == "etcd" or row["state"] != "running":
                continue
            page = cluster("exec", node, "curl", "-s", "-m", "5", f"http://{row['address']}:9511/metrics")
            known = dict(re.findall(r"^cairn_cluster_(\S+) (\d+)$", page, re.M))
            seen[node] = {name: int(known.get(name, -1)) for name in wanted}
            if seen[node] != wanted:
                break
        else:
            return
        if time.monotonic() > until:
            raise AssertionError(f"the cluster does not settle: {seen}")
        time.sleep(0.1)


def groups_with_a_place_at(cluster, node):
    seen = json.loads(cluster("exec", node, "cairn", "cluster", "--json"))
    return sum(entry["groups"] for entry in seen["nodes"] if entry["name"] == seen["asked"])


class ClusterUnderFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with contextlib.ExitStack() as stack:
            network = loopback_network() if NO_NAMESPACES else None
            address = f"{network or '10.77.0'}.{PROXIED}"
            cls.cluster = stack.enter_context(LocalCluster(
                cls.cairnd, NODES, *SETTINGS, f"{PROXIED}:cluster.advertise={address}:7499",
                namespaces=not NO_NAMESPACES, network=network))
            cls.proxy = stack.enter_context(FaultProxy(
                f"{address}:7412", f"{address}:7499", prefix=cls.cluster.command("exec", PROXIED)))
            settle(cls.cluster)
            cls.load = Load(cls.library, cls.cluster.folder, SPACES, pause=0.03)
            cls.cluster("exec", "1", "cairn", "namespace", "create", "other", "--shape", "4+2")
            for node in CLIENTS_AT:
                cls.load.start(cls.cluster.connect(node), node)
            stack.callback(cls.load.ending.set)
            cls.load.wait_for(100)
            cls.healthy = time.time()
            cls.addClassCleanup(stack.pop_all().close)

    @contextlib.contextmanager
    def fault(self, what, *nodes):
        """These nodes are at fault from now until the cluster has settled afterwards."""
        began = time.time()
        yield
        ended = time.time()
        settle(self.cluster)
        for node in nodes:
            self.load.events.event("fault", node=node, begin=began, end=time.time())
        self.tell(what, began, ended)

    def tell(self, what, began, ended):
        told = self.load.history()
        parts = []
        for op in ("get", "put"):
            before = history.latencies(told, op, end=self.healthy)
            during = history.latencies(told, op, begin=began, end=ended)
            slow = " / ".join(f"{percentile(during, part) * 1e3:.0f}" for part in (50, 90, 99))
            parts.append(f"{op} p50 / p90 / p99 {slow} ms of {len(during)}"
                         f" (healthy p99 {percentile(before, 99) * 1e3:.0f} ms)")
        print(f"{what}: {', '.join(parts)}", flush=True)

    def work_goes_on(self, gets=100, puts=20):
        self.load.wait_for(gets * WORK, "get")
        self.load.wait_for(puts * WORK, "put")

    def tearDown(self):
        """Some of all that was ever put is read once more elsewhere, and the whole history is judged."""
        reader = random.choice([node for node in self.cluster.nodes if node not in CLIENTS_AT])
        self.load.audit(self.cluster.connect(reader), reader, most=150)
        verdict = history.judge(self.load.history(), RULES)
        print(verdict, flush=True)
        self.assertEqual(verdict.violations, [])
        self.assertGreater(verdict.counts["owed"], 300)

    def any_two(self):
        return random.sample(self.cluster.nodes, 2)

    def test_any_two_nodes_are_killed(self):
        nodes = self.any_two()
        with self.fault(f"nodes {nodes} killed", *nodes):
            self.cluster("kill", *nodes)
            self.work_goes_on()
            self.cluster("start", *nodes)

    def test_any_two_nodes_hang(self):
        nodes = self.any_two()
        with self.fault(f"nodes {nodes} stopped", *nodes):
            self.cluster("stop", *nodes)
            self.work_goes_on()
            self.cluster("cont", *nodes)

    @unittest.skipIf(NO_NAMESPACES, f"links are cut in network namespaces only: {NO_NAMESPACES}")
    def test_links_are_cut(self):
        alone, deaf = self.any_two()
        with self.fault(f"node {alone} cut off, node {deaf} hears nobody", alone, deaf):
            for other in self.cluster.nodes + ["etcd"]:
                if other != alone:
                    self.cluster("cut", alone, other)
                if other not in (alone, deaf):
                    self.cluster("cut", "--one-way", other, deaf)
            self.work_goes_on()
            self.cluster("heal")

    def test_a_link_is_slow_and_breaks(self):
        with self.fault(f"node {PROXIED} far away, its connections break", PROXIED):
            # Far away comes last: afterwards the node holds no part of the index for ten minutes.
            for what, *how in (("its connections break", "break", 0.02), ("losing packets", "loss", 0.2, 0.3),
                               ("hears nobody", "cut", "backward"), ("far away", "delay", 0.05)):
                began = time.time()
                if what == "far away":
                    self.proxy("heal")
                self.proxy(*how)
                self.work_goes_on()
                self.tell(f"node {PROXIED} {what}", began, time.time())
            self.far_node_is_set_aside(PROXIED)
            self.proxy("heal")

    def far_node_is_set_aside(self, node):
        """Once the others have found it slow it holds no part of the index, and nobody waits for it."""
        until = time.monotonic() + 120
        while (groups := groups_with_a_place_at(self.cluster, node)) > 0:
            self.assertLess(time.monotonic(), until, f"{groups} groups have a place at node {node} still")
            time.sleep(0.5)
        began = time.time()
        self.work_goes_on()
        self.tell(f"node {node} far away, and set aside", began, time.time())

    def test_etcd_is_away(self):
        with self.fault("etcd killed"):
            self.cluster("kill", "etcd")
            began = time.monotonic()
            while time.monotonic() - began < 12:  # Longer than any lease.
                self.work_goes_on(gets=20, puts=3)
            with self.assertRaises(subprocess.CalledProcessError):
                subprocess.run(self.cluster.command("exec", "2", "cairn", "namespace", "create", "later"),
                               capture_output=True, check=True, timeout=60)
            self.cluster("start", "etcd")

    @unittest.skipIf(NO_NAMESPACES, f"mounting needs root, as namespaces do: {NO_NAMESPACES}")
    def test_a_node_is_replaced_by_an_empty_one_whose_disk_fills(self):
        node = random.choice([node for node in self.cluster.nodes if node not in CLIENTS_AT + (PROXIED,)])
        data = self.cluster.folder / f"node-{node}/data"
        self.load.events.event("lost", node=node, at=time.time())
        with self.fault(f"node {node} replaced", node):
            self.cluster("kill", node)
            shutil.rmtree(data)
            data.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "tmpfs", data], check=True)
            self.addClassCleanup(subprocess.run, ["umount", "-l", data], check=False)
            self.work_goes_on()
            self.cluster("start", node)
        with self.fault(f"the disk of node {node} full", node):
            filler = data / "filler"
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 65536)
            self.work_goes_on(puts=60)
            filler.unlink()

    def test_nodes_are_restarted_one_after_another(self):
        nodes = random.sample(self.cluster.nodes, RESTARTED)
        with self.fault(f"nodes {nodes} restarted"):
            for node in nodes:
                began = time.time()
                self.cluster("end", node)
                self.cluster("start", node)
                self.load.events.event("fault", node=node, begin=began, end=time.time() + 1)

    def test_nodes_go_back_to_an_older_program_and_forth(self):
        nodes = random.sample(self.cluster.nodes, 2)
        with self.fault(f"nodes {nodes} speak an older protocol for a while"):
            for limit, spoken in ((1, 1), (0, 2)):
                for node in nodes:
                    began = time.time()
                    self.cluster("end", node)
                    self.cluster("start", "--set", f"{node}:cluster.protocol_max={limit}", node)
                    self.load.events.event("fault", node=node, begin=began, end=time.time() + 1)
                settle(self.cluster, protocol=spoken)
                self.work_goes_on()


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        print("skipped: etcd is not installed (Debian: etcd-server)")
        sys.exit(77)
    ClusterUnderFaults.cairnd, ClusterUnderFaults.library = (pathlib.Path(sys.argv.pop(1)) for _ in range(2))
    unittest.main()
