"""A cluster of twelve real `cairnd` over a real etcd: any two may die.

Usage: cluster_test.py CAIRND CAIRN [unittest arguments]; skipped (77) where there is no etcd.
"""
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
        status, text = self.cluster.living()[0].http("/metrics")
        self.assertEqual(status, 200)
        self.assertIn('cairn_cluster_nodes{state="up"} 10', text)
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
