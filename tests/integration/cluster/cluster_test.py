"""A cluster of twelve real `cairnd` over a real etcd: any two may die.

Usage: cluster_test.py CAIRND CAIRN [unittest arguments]; skipped (77) where there is no etcd.
"""
import json
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

from cairn_cluster import Cluster, wait_for

CAIRND, CAIRN = sys.argv[1:3]
MISS = 3


def content(seed):
    source = random.Random(seed)
    return source.randbytes(source.randrange(1, 200_000))


class ClusterTestCase(unittest.TestCase):
    """A folder, and what is put in it is remembered."""

    count = 12

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-cluster-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cluster = Cluster(CAIRND, CAIRN, self.folder, self.count)
        self.addCleanup(self.cluster.__exit__)
        self.cluster.await_ready()
        self.stored = {}  # By key; as acknowledged.

    def put(self, node, key, patience=30):
        """Puts until it is acknowledged: a home that has just died makes it wait."""
        data = content(key)
        deadline = time.monotonic() + patience
        while True:
            done = node.cairn("put", "kv", key, stdin=data)
            if done.returncode == 0:
                self.stored[key] = data
                return
            if time.monotonic() > deadline:
                self.fail(f"{node.name} cannot put {key}: {done.stderr.decode()}{node.log()[-2000:]}")
            time.sleep(0.5)

    def put_many(self, keys):
        living = self.cluster.living()
        self.cluster.each(lambda at: self.put(living[at[0] % len(living)], at[1]), enumerate(keys))

    def check_all(self, nodes):
        """Everything acknowledged reads exactly, each key at one of `nodes`."""

        def check(at):
            node = nodes[at[0] % len(nodes)]
            done = node.cairn("get", "kv", at[1])
            self.assertEqual(done.returncode, 0, f"{at[1]} at {node.name}: {done.stderr.decode()}")
            self.assertEqual(done.stdout, self.stored[at[1]], f"{at[1]} at {node.name}")

        self.cluster.each(check, enumerate(sorted(self.stored)))

    def wait_until_whole(self):
        """Until what was put while nodes were away has all its shards: the next two may die."""

        def lacking():
            pages = [node.http("/metrics")[1] for node in self.cluster.living()]
            return sum(int(re.search(r"^cairn_store_stripes_lacking (\d+)", page, re.M)[1]) for page in pages)

        wait_for(lambda: lacking() == 0, 60, "stripes go on lacking shards")

    def create_space(self, *arguments):
        done = self.cluster.nodes[0].cairn("namespace", "create", "kv", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr.decode())


class AnyTwoDie(ClusterTestCase):
    def test_kill_two_of_twelve(self):
        self.create_space("--shape", "10+2")
        again = self.cluster.nodes[7].cairn("namespace", "create", "kv", "--shape", "10+2")
        self.assertNotEqual(again.returncode, 0)
        self.put_many([f"early-{i}" for i in range(36)])
        self.check_all(self.cluster.nodes)
        dead = random.sample(self.cluster.nodes, 2)
        for node in dead:
            node.kill()
        self.check_all(self.cluster.living())
        self.put_many([f"late-{i}" for i in range(24)])
        self.cluster.await_ready()
        self.check_all(self.cluster.living())
        survivor = self.cluster.living()[0]
        wait_for(lambda: 'cairn_cluster_nodes{state="up"} 10' in survivor.http("/metrics")[1], 60,
                 "two dead nodes are up in the map")
        for node in dead:
            node.start()
        self.cluster.await_ready()
        self.check_all(dead)
        self.wait_until_whole()
        for node in random.sample([node for node in self.cluster.nodes if node not in dead], 2):
            node.kill()
        self.check_all(self.cluster.living())
        survivor = self.cluster.living()[0]
        self.assertEqual(survivor.stop(), 0, survivor.log()[-2000:])

    def test_etcd_goes_and_comes(self):
        self.create_space("--shape", "10+2")
        self.put_many([f"before-{i}" for i in range(12)])
        self.cluster.etcd.stop()
        time.sleep(12)  # Longer than any lease.
        self.check_all(self.cluster.nodes)
        self.put_many([f"during-{i}" for i in range(24)])
        self.cluster.etcd.start()
        self.check_all(self.cluster.nodes)
        self.cluster.await_ready()
        self.put_many([f"after-{i}" for i in range(12)])
        self.check_all(self.cluster.nodes)


class Drained(ClusterTestCase):
    count = 6

    def look(self, node):
        """`cairn cluster --json` at one node, and in it its nodes by name."""
        done = node.cairn("cluster", "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        seen = json.loads(done.stdout)
        return seen, {row["name"]: row for row in seen["nodes"]}

    def test_a_drained_node_is_taken_away_and_two_more_die(self):
        nodes = self.cluster.nodes
        self.create_space("--shape", "2+2")
        self.put_many([f"key-{i}" for i in range(24)])
        self.wait_until_whole()
        seen, by_name = self.look(nodes[5])
        self.assertEqual({row["state"] for row in by_name.values()}, {"up"})
        self.assertEqual((len(by_name), seen["healthy"], seen["asked"]), (6, True, "node-5"), seen)
        self.assertIn(seen["coordinator"], by_name)
        self.assertGreater(by_name["node-3"]["groups"], 0)
        self.assertEqual(nodes[1].cairn("cluster", "--check").returncode, 0)
        unknown = nodes[0].cairn("drain", "node-77")
        self.assertEqual(unknown.returncode, MISS)
        self.assertIn(b"there is no node 'node-77'", unknown.stderr)

        done = nodes[0].cairn("drain", "node-3")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        wait_for(lambda: self.look(nodes[5])[1]["node-3"]["vacated"], 60,
                 lambda: f"not emptied: {self.look(nodes[5])}")
        self.assertEqual(self.look(nodes[1])[1]["node-3"]["groups"], 0)
        nodes[3].kill()
        self.check_all(self.cluster.living())
        # With two parity shards a stripe bears that two are away, and no third.
        nodes[1].kill()
        nodes[2].kill()
        self.check_all(self.cluster.living())

        self.cluster.etcd.stop()
        away = nodes[0].cairn("drain", "--undo", "node-3")
        self.assertEqual(away.returncode, 1)
        self.assertIn(b"does not answer", away.stderr)
        blind = nodes[0].cairn("cluster", "--check")
        self.assertEqual(blind.returncode, 4)
        self.assertIn(b"does not answer", blind.stdout)


class Mistakes(ClusterTestCase):
    count = 3

    def wait_for_end(self, node, words):
        wait_for(lambda: not node.running(), 100, f"{node.name} does not end")
        self.assertEqual(node.process.returncode, 1)
        self.assertIn(words, node.log())

    def test_words(self):
        twin = self.cluster.add(name="node-1")
        other_bits = self.cluster.add("--cluster-group-bits", "9")
        no_etcd = self.cluster.add(etcd="http://127.0.0.1:1")
        self.wait_for_end(other_bits, "cluster.group_bits: is 9, and the cluster was made with 8")
        self.wait_for_end(twin, "cluster.node: the name 'node-1' is taken")
        self.wait_for_end(no_etcd, "cluster.etcd: does not answer")
        stopped = self.cluster.nodes[0]
        stopped.signal(signal.SIGTERM)
        self.assertEqual(stopped.process.wait(timeout=60), 0, stopped.log()[-2000:])


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
