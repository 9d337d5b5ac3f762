"""Simulated clusters from fixed seeds, and from one that is the commit's own; their histories are judged.

Usage: cluster_sim_test.py SOURCE CLUSTER_SIM [unittest arguments]
"""
import os
import subprocess
import sys
import tempfile
import unittest
import zlib

import history

SEEDS = (*range(1, 9), 48)  # The last one is 60 nodes.
SKEW = 4.0                  # Seconds: calendars are 2 s before or behind the world's.
FAIL_OVER = 10.0            # Seconds after a fault in which a read may fail.
RULES = history.Rules(budget=2, patience=FAIL_OVER, late=2.5, skew=SKEW)


class Simulated(unittest.TestCase):
    def setUp(self):
        self.path = tempfile.mkstemp(prefix="cairn-cluster-")[1]
        self.addCleanup(os.unlink, self.path)

    def run_of(self, seed):
        done = subprocess.run([self.cluster_sim, str(seed), self.path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"seed {seed}: {done.stdout}{done.stderr}")
        return done.stdout, history.History.load([self.path])

    def judge(self, seed):
        said, told = self.run_of(seed)
        verdict = history.judge(told, RULES)
        print(said.strip(), verdict, sep="; ", flush=True)
        self.assertEqual(verdict.violations, [], seed)
        self.assertGreater(verdict.counts["owed"], 1000)

    def test_what_is_owed_is_read_and_all_becomes_whole(self):
        for seed in SEEDS:
            self.judge(seed)

    def test_of_the_commit(self):
        head = subprocess.run(["git", "-C", self.source, "rev-parse", "HEAD"], capture_output=True, check=False)
        self.judge(1000 + zlib.crc32(head.stdout) % 1_000_000)

    def test_the_same_seed_does_the_same(self):
        first = self.run_of(5)[1]
        again = self.run_of(5)[1]
        self.assertEqual([str(one) for one in first.joined()], [str(one) for one in again.joined()])

    def test_a_wrong_byte_would_be_seen(self):
        told = self.run_of(5)[1]
        read = next(one for one in told.joined() if one.op == "get" and one.result == "ok")
        for put in told.operations.values():
            if put.op == "put" and (put.space, put.key) == (read.space, read.key):
                put.digest = "0"
        self.assertNotEqual(history.judge(told, RULES).violations, [])


if __name__ == "__main__":
    Simulated.source, Simulated.cluster_sim = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
