"""One cairnd under clients, killed again and again: the judge of histories has nothing to say.

Usage: history_test.py CAIRND LIBCAIRN [unittest arguments]
"""
import pathlib
import subprocess
import sys
import time
import unittest

import history
from history_load import Load, Space
from local_cluster import LocalCluster

SPACES = (Space("plain", puts=({}, {"durable": 1}), data_shards=10, parity_shards=2),
          Space("brief", puts=({"ttl_seconds": 2}, {"ttl_seconds": 1}, {"ttl_seconds": 1, "keep_seconds": 4}),
                data_shards=4, parity_shards=1))


class OneNode(unittest.TestCase):
    def test_a_store_that_is_killed_keeps_what_it_acknowledged(self):
        with LocalCluster(self.cairnd, 1, "cluster.enabled=false", "store.targets=12", "store.target_size=256 MiB",
                          namespaces=False) as cluster:
            load = Load(self.library, cluster.folder, SPACES)
            for _ in range(3):
                load.start(cluster.connect("1"), "1")
            for _ in range(4):
                load.wait_for(60)
                began = time.time()
                cluster("kill", "1")
                cluster("start", "1")
                load.events.event("fault", node="1", begin=began, end=time.time())
            load.wait_for(60)
            load.stop()
            self.drop(cluster, load, "brief")
            load.audit(cluster.connect("1"), "1")
            verdict = history.judge(load.history(), history.Rules(patience=1.5))
        print(f"{verdict}", flush=True)
        self.assertEqual(verdict.violations, [])
        self.assertGreater(verdict.counts["owed"], 100)
        self.assertGreater(verdict.counts["delete ok"], 0)

    def drop(self, cluster, load, space):
        """Its blocks must not be seen in a namespace of that name that is made anew."""
        name = load.events.begin("drop", 30, space=space)
        subprocess.run(cluster.command("exec", "1", "cairn", "namespace", "delete", space, "--yes"), check=True)
        load.events.end(name, "ok")


if __name__ == "__main__":
    OneNode.cairnd, OneNode.library = (pathlib.Path(path) for path in (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main()
