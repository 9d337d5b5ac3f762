"""Drives `cairn replay` with a generated trace: every byte verified, and beside its prediction.

Usage: replay_test.py CAIRN_BINARY
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from replays import check_report, describe, predict, replay

BINARY = sys.argv[1]


def make_trace(path, requests=160):
    """Sessions that grow, in Mooncake's format, 512 tokens a block."""
    generator = random.Random(5)
    sessions, now, fresh = [], 0, 0
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(requests):
            now += generator.randint(200, 2000)
            if sessions and generator.random() < 0.75:
                blocks = sessions[-1 - min(len(sessions) - 1, int(generator.expovariate(0.15)))]
            else:
                blocks = []
                sessions.append(blocks)
            for _ in range(generator.randint(1, 12)):
                blocks.append(fresh)
                fresh += 1
            file.write(json.dumps({"timestamp": now, "input_length": 512 * len(blocks),
                                   "output_length": 10, "hash_ids": blocks}) + "\n")


class Replay(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cairn-replay-")
        self.addCleanup(self.folder.cleanup)
        self.trace = pathlib.Path(self.folder.name) / "trace.jsonl"
        make_trace(self.trace)

    def replay(self, *arguments):
        return subprocess.run(
            [BINARY, "replay", self.trace, "--data", pathlib.Path(self.folder.name) / "data",
             "--capacity", "1 GiB", "--predict", *arguments],
            capture_output=True, text=True, check=False)

    def figure(self, done, name):
        line = next(line for line in done.stdout.splitlines() if line.startswith(name))
        return float(line[len(name):].replace("%", "").replace(",", "").split()[0])

    def test_what_fits_whole_gives_the_ideal_hit_rate(self):
        done = self.replay("--bytes-per-token", "256")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.figure(done, "Wrong bytes"), 0)
        self.assertEqual(self.figure(done, "Evicted stripes"), 0)
        rate = self.figure(done, "Token hit rate")
        self.assertGreater(rate, 30)
        self.assertEqual(rate, self.figure(done, "A cache that forgets nothing"))
        self.assertEqual(rate, self.figure(done, "Predicted hit rate"))

    def test_a_full_store_evicts_and_stays_exact(self):
        done = self.replay("--bytes-per-token", "2560")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.figure(done, "Wrong bytes"), 0)
        self.assertEqual(self.figure(done, "Blocks that could not be put"), 0)
        self.assertGreater(self.figure(done, "Evicted stripes"), 0)

    def test_the_prediction_is_near_what_is_measured(self):
        make_trace(self.trace, requests=600)
        for bytes_per_token in (768, 1536):
            with self.subTest(bytes_per_token=bytes_per_token):
                report = replay(BINARY, self.trace, "--capacity", "1 GiB", "--bytes-per-token",
                                str(bytes_per_token))
                print(describe(f"generated, {bytes_per_token}", report), flush=True)
                check_report(self, report)

    def test_a_prediction_alone_is_that_beside_a_store(self):
        sizes = ("--capacity", "1 GiB", "--bytes-per-token", "256")
        alone = predict(BINARY, self.trace, *sizes)
        self.assertEqual(alone, replay(BINARY, self.trace, *sizes)["predicted"])
        segments = 2**30 // 12 // 2**22 * 12
        self.assertAlmostEqual(sum(alone["space_bytes"].values()), segments * 2**22, delta=1)
        done = self.replay("--bytes-per-token", "256", "--predict-only")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("leave out --data", done.stderr)

    def test_a_missing_trace_is_named(self):
        self.trace.unlink()
        done = self.replay()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("trace.jsonl", done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
