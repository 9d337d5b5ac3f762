"""What happens to a serving store: it is stopped, its files rot, others want its targets.

Usage: faults_test.py DRIVER [unittest arguments]
"""
import concurrent.futures
import os
import random
import resource
import signal
import sys
import threading
import time
import unittest

from store_process import Refused, StoreTestCase, flip_bits


def wait_for_state(pid, state):
    """Until /proc says so: a signal is only on its way when kill() returns."""
    while True:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == state:
                return


class StoppedTest(StoreTestCase):
    def test_sigstop_under_load_delays_and_loses_nothing(self):
        rng = random.Random(3)
        acknowledged = []
        with self.start("load", 0) as store:
            lines = store.lines()
            for stop in range(12):
                for _ in range(rng.randrange(5, 40)):
                    line = next(lines)
                    self.assertTrue(line.startswith("ack "), line)
                    acknowledged.append(int(line.split()[1]))
                store.signal(signal.SIGSTOP)
                wait_for_state(store.pid, "T")
                # How long it stands still is what is tried; the last time outlasts every deadline.
                time.sleep(6 if stop == 11 else rng.random() * 0.2)
                store.signal(signal.SIGCONT)
            for _ in range(40):  # It goes on as if nothing had been.
                line = next(lines)
                self.assertTrue(line.startswith("ack "), line)
                acknowledged.append(int(line.split()[1]))
        with self.start() as store:
            self.assert_all_there(store, acknowledged)


class RottenTest(StoreTestCase):
    def start_uncached(self):
        """What memory holds does not rot: every read is to come from the targets."""
        return self.start(STORE_CACHE_KIB=0)

    def flip_while_reading(self, store, numbers, targets, rounds):
        """Every answer is exact or a miss; returns those that were missing at some time."""
        rng = random.Random(11)
        missing = set()

        def read():
            missing.update(int(line.split()[1]) for line in store.get(numbers)[1])

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for _ in range(rounds):
                flipping = pool.submit(lambda: [flip_bits(self.target_file(target), rng, stride=16384)
                                                for target in targets])
                while not flipping.done():
                    read()
                flipping.result()
        read()
        return missing

    def test_bits_that_flip_in_two_targets_while_it_serves_cost_nothing(self):
        with self.start_uncached() as store:
            acknowledged = self.assert_puts(store, 0, 120)
            self.assertEqual(self.flip_while_reading(store, acknowledged, (2, 7), 4), set())
            self.assert_all_there(store, acknowledged)
            self.assertGreater(store.stats()["corrupt"], 0)

    def test_bits_that_flip_everywhere_are_misses_that_can_be_put_again(self):
        with self.start_uncached() as store:
            acknowledged = self.assert_puts(store, 0, 120)
            missing = self.flip_while_reading(store, acknowledged, range(12), 2)
            self.assertGreater(len(missing), 0)
            for n in sorted(missing):
                self.assert_puts(store, n, 1)
            self.assert_all_there(store, sorted(missing))
            self.assertEqual(store.stop(), "stopped ok")
        with self.start() as store:
            self.assert_all_there(store, sorted(missing))


class SharedTest(StoreTestCase):
    def test_a_second_process_on_the_folder_is_refused_and_told_who_has_it(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 20)
            self.assert_refused("conflict", "in use by another process", str(store.pid))
            self.assert_all_there(store, acknowledged)

    def test_a_second_folder_with_a_target_of_the_first_is_refused(self):
        other = os.path.join(self.folder, "other")
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 20)
            with self.start(data=other):
                pass
            target = os.path.join(other, "target-04")
            os.rename(target, target + "-aside")
            os.symlink(os.path.join(self.data, "target-04"), target)
            self.assert_refused("conflict", "target-04", "in use by another process", data=other)
            self.assert_all_there(store, acknowledged)
            self.assertEqual(store.stats()["degraded"], 0)

    def test_of_many_that_start_at_once_one_serves(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 20)
        all_have_tried = threading.Barrier(8)

        def attempt(_):
            try:
                store = self.start()
            except Refused as refused:
                all_have_tried.wait()
                return str(refused)
            with store:
                all_have_tried.wait()
                self.assert_all_there(store, acknowledged)
            return "served"

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            ends = list(pool.map(attempt, range(8)))
        self.assertEqual(ends.count("served"), 1, ends)
        self.assertEqual(sum("in use by another process" in end for end in ends), 7, ends)


class FullTest(StoreTestCase):
    def test_writes_that_fail_in_every_file_are_refusals_and_end(self):
        """A limit on file sizes stands for a full disk: targets and metadata both meet it."""
        with self.start(preexec=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN)) as store:
            before = self.assert_puts(store, 0, 60)
            self.assertEqual(resource.prlimit(store.pid, resource.RLIMIT_FSIZE,
                                              (4096, resource.RLIM_INFINITY))[1],
                             resource.RLIM_INFINITY)
            acknowledged, refused = store.put(64, 40)
            self.assertGreater(len(refused), 0)
            self.assert_all_there(store, before + acknowledged)
            resource.prlimit(store.pid, resource.RLIMIT_FSIZE,
                             (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            after = put_until_accepted(self, store, 128)
            self.assert_all_there(store, before + acknowledged + after)
            self.assertEqual(store.stop(), "stopped ok")
        with self.start() as store:
            self.assert_all_there(store, before + acknowledged + after)


def put_until_accepted(case, store, first, attempts=200):
    """The store notices by itself, within the intervals of its housekeeping, that it can go on."""
    for attempt in range(attempts):
        acknowledged, _ = store.put(first + 32 * attempt, 20)
        if len(acknowledged) == 20:
            return acknowledged
        time.sleep(0.1)
    case.fail("the store did not recover: " + store.log()[-3000:])
    return []


if __name__ == "__main__":
    StoreTestCase.driver = sys.argv.pop(1)
    unittest.main()
