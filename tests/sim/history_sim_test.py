"""Histories of simulated runs pass the judge of histories; one that is tampered with does not.

Usage: history_sim_test.py STORE_SIM [unittest arguments]
"""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest

import history

SEEDS = 25  # To be judged, of each mode; some more tell no history.


class Simulated(unittest.TestCase):
    def setUp(self):
        self.path = tempfile.mkstemp(prefix="cairn-history-")[1]
        self.addCleanup(os.unlink, self.path)

    def run_of(self, mode, seed):
        """None when this seed tells no history."""
        done = subprocess.run([self.store_sim, "--mode", mode, "--first", str(seed), "--history", self.path],
                              capture_output=True, text=True, check=False)
        if "no history" in done.stdout:
            return None
        self.assertEqual(done.returncode, 0, done.stdout)
        return history.History.load([self.path])

    def runs(self, mode):
        """(seed, history) of the first that tell one."""
        told = ((seed, self.run_of(mode, seed)) for seed in itertools.count(1))
        return itertools.islice(((seed, run) for seed, run in told if run), SEEDS)

    def test_within_the_budget_all_that_is_owed_is_read(self):
        owed = 0
        for seed, run in self.runs("within"):
            verdict = history.judge(run, history.Rules(staleness=0, impatient=True))
            self.assertEqual(verdict.violations, [], seed)
            owed += verdict.counts["owed"]
        self.assertGreater(owed, 300 * SEEDS)

    def test_beyond_it_nothing_is_wrong(self):
        for seed, run in self.runs("beyond"):
            verdict = history.judge(run, history.Rules(budget=-1, staleness=0))
            self.assertEqual(verdict.violations, [], seed)

    def test_a_wrong_byte_would_be_seen(self):
        _seed, told = next(self.runs("within"))
        read = next(one for one in told.joined() if one.op == "get" and one.result == "ok")
        for put in told.operations.values():
            if put.op == "put" and (put.space, put.key) == (read.space, read.key):
                put.digest = "0"
        self.assertNotEqual(history.judge(told, history.Rules(staleness=0, impatient=True)).violations, [])


if __name__ == "__main__":
    Simulated.store_sim = sys.argv.pop(1)
    unittest.main()
