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
import unittest

from store_process import StoreTestCase, flip_bits, forbid_io_uring

KILL_LOOPS = int(os.environ.get("STORE_KILL_LOOPS", "100"))


class KilledTest(StoreTestCase):
    def test_kill_9_under_load_loses_nothing_acknowledged(self):
        rng = random.Random(7)
        acknowledged, first = [], 0
        for loop in range(KILL_LOOPS):
            until, seen = rng.randrange(1, 40), 0
            with self.start("load", first) as store:
                for line in store.lines():
                    self.assertTrue(line.startswith("ack "), f"loop {loop}: {line}")
                    acknowledged.append(int(line.split()[1]))
                    seen += 1
                    if seen == until:
                        store.signal(signal.SIGKILL)
            # What was on its way when it died is skipped: it may be there or not.
            first = acknowledged[-1] + 64
            if loop % 10 == 9:
                with self.start() as store:
                    self.assert_all_there(store, rng.sample(acknowledged, 50))
        with self.start() as store:
            self.assert_all_there(store, acknowledged)

    def test_kill_9_while_it_starts_costs_nothing(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 60)
        for delay_ms in range(0, 60, 3):
            process = subprocess.Popen([self.driver, "serve", self.data, "1"],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            try:
                process.wait(timeout=delay_ms / 1000)  # Somewhere within the start, or after it.
            except subprocess.TimeoutExpired:
                pass
            process.kill()
            process.wait()
            process.stdin.close()
        with self.start() as store:
            self.assert_all_there(store, acknowledged)


class DamagedTest(StoreTestCase):
    def test_any_two_deleted_targets_cost_nothing(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 120)
        for target in (3, 8):
            shutil.rmtree(os.path.join(self.data, f"target-{target:02}"))
        with self.start() as store:
            self.assert_all_there(store, acknowledged)
            self.assertGreater(store.stats()["degraded"], 0)
        with self.start() as store:  # Once more, with the new empty targets in their places.
            self.assert_all_there(store, acknowledged)

    def test_flipped_bits_in_one_target_are_noticed_and_cost_nothing(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 120)
            # In order: after kill -9 the next start would look at all records and drop these.
            self.assertEqual(store.stop(), "stopped ok")
        flip_bits(self.target_file(5), random.Random(5))
        with self.start() as store:
            self.assert_all_there(store, acknowledged)
            stats = store.stats()
        self.assertGreater(stats["degraded"], 0)
        self.assertGreater(stats["corrupt"], 0)


class RefusedTest(StoreTestCase):
    def test_an_unknown_version_is_refused_and_nothing_is_touched(self):
        with self.start() as store:
            self.assert_puts(store, 0, 5)
        subprocess.run([self.driver, "reversion", self.target_file(6), "0"], check=True)
        shutil.rmtree(os.path.join(self.data, "target-00"))
        self.assert_refused("conflict", "target-06")
        self.assertFalse(os.path.exists(os.path.join(self.data, "target-00")))

    def test_too_little_space_is_refused_with_numbers(self):
        self.assert_refused("no space", "MiB free", STORE_TARGET_MIB=1 << 30)

    def test_a_folder_that_is_not_writable_is_refused(self):
        os.chmod(self.folder, 0o555)
        # Root may write everywhere: be somebody else, running a copy that anybody may read.
        other = {"user": "nobody"} if os.geteuid() == 0 else {}
        with tempfile.TemporaryDirectory(dir="/tmp") as place:
            os.chmod(place, 0o755)
            driver = shutil.copy(self.driver, place)
            refused = subprocess.run([driver, "serve", self.data, "1"], text=True, check=False,
                                     capture_output=True, cwd="/", stdin=subprocess.DEVNULL, **other)
        os.chmod(self.folder, 0o755)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("cannot be created", refused.stderr)


class LifeTest(StoreTestCase):
    def test_a_full_store_goes_on(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 4000)
            self.assert_all_there(store, acknowledged[-100:])
            store.get(acknowledged[:200])  # What was evicted is missing, never wrong.

    def test_where_io_uring_is_forbidden_it_says_so_and_serves(self):
        try:
            store = self.start(preexec=forbid_io_uring, CAIRN_POLLER="auto")
        except subprocess.SubprocessError:
            self.skipTest("this kernel has no seccomp filters")
        with store:
            self.assertIn("disks use threads and sockets use epoll instead", store.log())
            self.assert_all_there(store, self.assert_puts(store, 0, 60))
            self.assertEqual(store.stop(), "stopped ok")


if __name__ == "__main__":
    StoreTestCase.driver = sys.argv.pop(1)
    unittest.main()
