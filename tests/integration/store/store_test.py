"""A store in a real process on real files: kill -9, lost folders, flipped bits, refusals.

Usage: store_test.py DRIVER [unittest arguments]
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

DRIVER = None
KILL_LOOPS = int(os.environ.get("STORE_KILL_LOOPS", "30"))


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cairn-store-")
        self.data = os.path.join(self.folder, "data")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run_driver(self, *args, numbers=(), expect=0, **env):
        done = subprocess.run([DRIVER, args[0], self.data, *map(str, args[1:])], text=True,
                              input="\n".join(map(str, numbers)), capture_output=True, timeout=300,
                              env={**os.environ, **env}, check=False)
        self.assertEqual(done.returncode, expect, done.stdout[-2000:] + done.stderr[-2000:])
        return done

    def put(self, first, count):
        out = self.run_driver("put", 1, first, count).stdout
        return [int(line.split()[1]) for line in out.splitlines() if line.startswith("ack ")]

    def check_all(self, numbers):
        """Every one is there, exact. Returns (degraded reads, corrupt shards)."""
        out = self.run_driver("check", 1, numbers=numbers).stdout.splitlines()
        bad = [line for line in out if line.startswith(("missing", "WRONG"))]
        self.assertEqual(bad, [])
        self.assertEqual(sum(line.startswith("ok ") for line in out), len(numbers))
        words = out[-1].split()
        return int(words[1]), int(words[3])

    def test_kill_9_under_load_loses_nothing_acknowledged(self):
        rng = random.Random(7)
        acknowledged, first = [], 0
        log = os.path.join(self.folder, "log")
        for loop in range(KILL_LOOPS):
            with open(log, "w", encoding="utf-8") as errors:
                process = subprocess.Popen([DRIVER, "put", self.data, "1", str(first), "100000"],
                                           stdout=subprocess.PIPE, stderr=errors, text=True)
            if process.stdout.readline().strip() != "serving":
                with open(log, encoding="utf-8") as errors:
                    self.fail(f"loop {loop}, exit code {process.wait()}: {errors.read()[-2000:]}")
            seen, until = 0, rng.randrange(5, 60)
            for line in process.stdout:
                self.assertTrue(line.startswith("ack "), line)
                acknowledged.append(int(line.split()[1]))
                seen += 1
                if seen == until:
                    process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            first = acknowledged[-1] + 64
        self.check_all(acknowledged)

    def test_any_two_deleted_targets_cost_nothing(self):
        acknowledged = self.put(0, 120)
        self.assertEqual(len(acknowledged), 120)
        for target in (3, 8):
            shutil.rmtree(os.path.join(self.data, f"target-{target:02}"))
        degraded, _ = self.check_all(acknowledged)
        self.assertGreater(degraded, 0)
        self.check_all(acknowledged)  # Once more, with the new empty targets in their places.

    def test_flipped_bits_in_one_target_are_noticed_and_cost_nothing(self):
        acknowledged = self.put(0, 120)
        rng = random.Random(5)
        path = os.path.join(self.data, "target-05", "segments")
        with open(path, "r+b") as file:
            for offset in range(64 * 1024 + 4096, 8 * 1024 * 1024, 2048):
                at = offset + rng.randrange(2048)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1 << rng.randrange(8)]))
        degraded, corrupt = self.check_all(acknowledged)
        self.assertGreater(degraded, 0)
        self.assertGreater(corrupt, 0)

    def test_a_second_process_is_refused(self):
        process = subprocess.Popen([DRIVER, "put", self.data, "1", "0", "1000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline().strip(), "serving")
        refused = self.run_driver("check", 1, expect=3)
        self.assertIn("in use by another process", refused.stderr)
        self.assertIn(str(process.pid), refused.stderr)
        process.kill()
        process.wait()
        process.stdout.close()

    def test_an_unknown_version_is_refused_and_nothing_is_touched(self):
        self.put(0, 5)
        path = os.path.join(self.data, "target-06", "segments")
        subprocess.run([DRIVER, "reversion", path, "0"], check=True)
        shutil.rmtree(os.path.join(self.data, "target-00"))
        refused = self.run_driver("check", 1, expect=3)
        self.assertIn("conflict", refused.stderr)
        self.assertIn("target-06", refused.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.data, "target-00")))

    def test_too_little_space_is_refused_with_numbers(self):
        refused = self.run_driver("check", 1, expect=3, STORE_TARGET_MIB=str(1 << 30))
        self.assertIn("no space", refused.stderr)
        self.assertIn("MiB free", refused.stderr)

    def test_a_folder_that_is_not_writable_is_refused(self):
        os.chmod(self.folder, 0o555)
        # Root may write everywhere: be somebody else, running a copy that anybody may read.
        other = {"user": "nobody"} if os.geteuid() == 0 else {}
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            os.chmod(place, 0o755)
            driver = shutil.copy(DRIVER, place)
            refused = subprocess.run([driver, "check", self.data, "1"], text=True, check=False,
                                     capture_output=True, cwd="/", **other)
        os.chmod(self.folder, 0o755)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("cannot be created", refused.stderr)

    def test_a_full_store_goes_on(self):
        acknowledged, started = [], time.monotonic()
        out = self.run_driver("put", 1, 0, 4000).stdout.splitlines()
        self.assertEqual([line for line in out if line.startswith("refused")], [])
        acknowledged = [int(line.split()[1]) for line in out if line.startswith("ack ")]
        self.assertLess(time.monotonic() - started, 250)
        recent = acknowledged[-100:]
        self.check_all(recent)
        # What was evicted is missing, never wrong.
        self.run_driver("check", 1, numbers=acknowledged[:200])


if __name__ == "__main__":
    DRIVER = sys.argv.pop(1)
    unittest.main()
