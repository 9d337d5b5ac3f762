"""The file system under a serving store becomes full, or read-only.

Usage: filesystem_test.py DRIVER [unittest arguments]; exit code 77 where mounting is not allowed
"""
import os
import re
import sys
import time
import unittest

from loop_mount import LoopMount, NotAllowed
from store_process import Refused, StoreTestCase

MIB = 1 << 20


class FilesystemTest(StoreTestCase):
    target_mib = 64

    def setUp(self):
        super().setUp()
        # Twelve targets, the journal and the inodes of ext4, and some metadata.
        self.mount = LoopMount(12 * self.target_mib * 9 // 8 + 128)
        self.data = os.path.join(self.mount.path, "data")

    def tearDown(self):
        self.mount.close()
        super().tearDown()

    def put_many(self, store, first, blocks):
        """Returns what was acknowledged; any may be refused."""
        acknowledged = []
        for start in range(first, first + blocks, 64):
            acknowledged += store.put(start, 64)[0]
        return acknowledged

    def until_accepted(self, store, first):
        """The store finds out by itself that it can go on."""
        for attempt in range(300):
            acknowledged, refused = store.put(first + 64 * attempt, 20)
            if not refused:
                return acknowledged
            time.sleep(0.1)
        return self.fail("no put is accepted: " + store.log()[-3000:])


class FullTest(FilesystemTest):
    # The metadata of the test meets the end of the file system before the targets are full.
    target_mib = 160

    def start(self, *arguments, **options):
        return super().start(*arguments, STORE_TARGET_MIB=self.target_mib, **options)

    def test_a_full_file_system_refuses_honestly_and_goes_on_when_there_is_room(self):
        with self.start(STORE_MEMTABLE_KIB=256) as store:
            before = self.assert_puts(store, 0, 60)
            filler = self.mount.fill()
            self.assertLess(self.mount.free_bytes(), MIB)
            # Targets are allocated ahead, and only the metadata grows; what it frees is taken, too.
            meanwhile = []
            for first in range(64, 20000, 64):
                meanwhile += self.put_many(store, first, 64)
                self.mount.fill()
                if re.search("no space|where they were missing", store.log()):
                    break
            else:
                self.fail("no write met the full file system: " + store.log())
            # Otherwise a miss says nothing: what was put in one second is of the same age.
            self.assertEqual(store.stats()["evicted"], 0)
            acknowledged = before + meanwhile
            self.assert_all_there(store, acknowledged)
            os.unlink(filler)
            after = self.until_accepted(store, 20480)
            self.assert_all_there(store, acknowledged + after)
            self.assertEqual(store.stop(), "stopped ok")
        with self.start() as store:
            self.assert_all_there(store, acknowledged + after)

    def test_a_store_on_a_full_file_system_starts_or_says_why_not(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 60)
        filler = self.mount.fill()
        try:
            with self.start() as store:
                self.assert_all_there(store, acknowledged)
        except Refused as refused:
            self.assertIn("space", str(refused))
        os.unlink(filler)
        with self.start() as store:
            self.assert_all_there(store, acknowledged)

    def test_no_room_for_the_targets_is_refused_and_leaves_nothing_half_made(self):
        filler = self.mount.fill()
        self.assert_refused("pace")
        os.unlink(filler)
        with self.start() as store:
            self.assert_all_there(store, self.assert_puts(store, 0, 20))


class ReadOnlyTest(FilesystemTest):
    def test_a_file_system_that_turns_read_only_still_serves_and_refuses_puts(self):
        with self.start() as store:
            before = self.assert_puts(store, 0, 100, "durable")
            self.mount.break_it()
            acknowledged = self.put_many(store, 128, 256)
            # What was promised in memory may still be there; it is exact or missing.
            good, _ = store.get(before + acknowledged)
            self.assertGreater(len(set(good) & set(before)), 0)
            _, refused = store.put(1024, 20)
            self.assertEqual(len(refused), 20, "a read-only store cannot keep a block")
        self.assert_refused()
        self.mount.unmount()
        self.mount.repair()
        self.mount.mount()
        with self.start() as store:
            self.assert_all_there(store, before)
            store.get(acknowledged)  # Lost as in a power cut, or exact.
            self.assert_all_there(store, self.assert_puts(store, 2048, 20))

    def test_a_store_on_a_read_only_file_system_is_refused(self):
        with self.start() as store:
            acknowledged = self.assert_puts(store, 0, 60)
            self.assertEqual(store.stop(), "stopped ok")
        self.mount.unmount()
        os.system(f"mount -o ro {self.mount.device} {self.mount.path}")
        self.assertIn("Read-only", self.assert_refused())
        self.mount.unmount()
        self.mount.mount()
        with self.start() as store:
            self.assert_all_there(store, acknowledged)


if __name__ == "__main__":
    StoreTestCase.driver = sys.argv.pop(1)
    try:
        LoopMount(16).close()
    except NotAllowed as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
