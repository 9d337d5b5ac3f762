"""The whole of Cairn as one process: the same greedy text cold, warm, and after every kind of loss.

Usage: stack_test.py CAIRN_BINARY MODEL.gguf|tiny [unittest arguments]
"""
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from cairn_process import Cairn, cached, targets

BINARY = pathlib.Path(sys.argv[1])
MODEL = sys.argv[2]
CAPACITY = ["--capacity", "1200MiB", "--kv-memory", "256MiB", "--always-load"]
WORDS = ("river stone lantern quiet morning copper window garden seven paper bridge winter "
         "orange signal harbour").split()


def prompt(seed, words):
    generator = random.Random(seed)
    return f"Note {seed}. " + " ".join(generator.choice(WORDS) for _ in range(words))


def flip_payloads(target):
    """One bit in each sector of a target that payloads are in; again, and all is as before."""
    for path in sorted(target.rglob("segments")):
        with open(path, "r+b") as file:
            # Behind the first segment's headers.
            for offset in range(64 * 1024 + 8192, min(path.stat().st_size, 64 << 20), 4096):
                file.seek(offset + 100)
                byte = file.read(1)
                file.seek(offset + 100)
                file.write(bytes([byte[0] ^ 0x40]))


class Stack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="cairn-stack-")
        cls.model = pathlib.Path(MODEL)
        if MODEL == "tiny":
            cls.model = pathlib.Path(cls.folder.name) / "tiny.gguf"
            subprocess.run([BINARY, "tiny-model", cls.model], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.data = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))

    def tearDown(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def start(self, *arguments, **options):
        return Cairn(BINARY, self.model, self.data, *CAPACITY, *arguments, **options)

    def assert_warm(self, answer, cold, usage):
        self.assertEqual(answer, cold)
        # All but the last partial block, and at least nine tenths of such a prompt.
        self.assertGreater(cached(usage), usage["prompt_tokens"] * 0.85)
        self.assertLess(cached(usage), usage["prompt_tokens"])


class GreedyTextIsTheSame(Stack):
    def test_warm_restarted_killed_and_degraded(self):
        text = prompt(1, 250)
        with self.start() as cairn:
            cold, usage = cairn.chat(text)
            self.assertEqual(cached(usage), 0)
            self.assertNotEqual(cold, "")
            self.assert_warm(*self.ask(cairn, text, cold))
            other, usage = cairn.chat(prompt(2, 250))
            self.assertLess(cached(usage), 64)
            self.assertNotEqual(other, "")

        with self.start() as cairn:  # After a restart of everything.
            self.assert_warm(*self.ask(cairn, text, cold))
            fresh, usage = cairn.chat(prompt(3, 200))
            self.assertEqual(cached(usage) // 64, 0)
            cairn.kill()  # kill -9, just after an acknowledged answer.

        with self.start() as cairn:
            self.assert_warm(*self.ask(cairn, text, cold))
            again, _ = cairn.chat(prompt(3, 200))
            self.assertEqual(again, fresh)

        for folder in random.Random(5).sample(targets(self.data), 2):  # Any 2 of 12.
            shutil.rmtree(folder)
        with self.start() as cairn:
            self.assert_warm(*self.ask(cairn, text, cold))
            self.assertGreater(cairn_metric_soon(cairn, "cairn_store_missing_shards_total"), 0)

    def test_flipped_bytes_of_one_target_are_noticed_and_read_around(self):
        text = prompt(4, 250)
        with self.start() as cairn:
            cold, _ = cairn.chat(text)
        for target in targets(self.data)[:3]:  # Two may hold parity of the stripe, and no data.
            flip_payloads(target)
            with self.start() as cairn:
                self.assert_warm(*self.ask(cairn, text, cold))
                if cairn_metric_soon(cairn, "cairn_store_degraded_reads_total") > 0:
                    return
            flip_payloads(target)
        self.fail("no read was degraded")

    def test_answers_become_prefixes(self):
        with self.start() as cairn:
            text = prompt(6, 200)
            first, usage = cairn.chat(text, max_tokens=80)
            messages = [{"role": "user", "content": text},
                        {"role": "assistant", "content": first},
                        {"role": "user", "content": "And then?"}]
            status, body = cairn.request("POST", "/v1/chat/completions", {
                "model": "test", "temperature": 0, "max_tokens": 8, "messages": messages})
            self.assertEqual(status, 200, body)
            self.assertGreaterEqual(cached(body["usage"]), usage["prompt_tokens"] - 64)

    def ask(self, cairn, text, cold):
        answer, usage = cairn.chat(text)
        return answer, cold, usage


def cairn_metric_soon(cairn, name):
    """Store metrics are sampled once a second: asks until it is there, for ten seconds at most."""
    for _ in range(100):
        value = cairn.metric(name)
        if value > 0:
            return value
        time.sleep(0.1)
    return 0


class BadSurroundings(Stack):
    def test_second_process_on_the_same_data_is_refused_and_harms_nothing(self):
        with self.start() as cairn:
            cold, _ = cairn.chat("hello")
            second = self.start(expect_failure=True)
            self.assertEqual(second.process.returncode, 1)
            self.assertIn("in use", second.log())
            self.assertEqual(cairn.chat("hello")[0], cold)

    def test_data_folder_that_cannot_be_made(self):
        path = self.data / "file"
        path.write_text("not a folder")
        failed = Cairn(BINARY, self.model, path, *CAPACITY, expect_failure=True)
        self.assertEqual(failed.process.returncode, 1)
        self.assertIn(str(path), failed.log())
        self.assertEqual(path.read_text(), "not a folder")

    def test_more_capacity_than_the_disk_has(self):
        failed = Cairn(BINARY, self.model, self.data, "--capacity", "900TiB", expect_failure=True)
        self.assertEqual(failed.process.returncode, 1)
        self.assertRegex(failed.log(), "(?i)space|free|large")

    def test_bad_models_are_named(self):
        truncated = self.data / "truncated.gguf"
        truncated.write_bytes(self.model.read_bytes()[:100000])
        rubbish = self.data / "rubbish.gguf"
        rubbish.write_bytes(b"hello" * 1000)
        for path in (truncated, rubbish, self.data / "absent.gguf"):
            failed = Cairn(BINARY, path, self.data / "d", expect_failure=True)
            self.assertEqual(failed.process.returncode, 1)
            self.assertIn(path.name, failed.log())
            self.assertFalse((self.data / "d").exists(), "nothing is made for a bad model")

    def test_other_format_version_is_refused_and_left_alone(self):
        with self.start() as cairn:
            cairn.chat("hello")
        victim = next(iter(sorted(targets(self.data)[2].rglob("segments"))))
        with open(victim, "r+b") as file:
            for copy in (0, 32 * 1024):
                file.seek(copy + 8)
                file.write(b"\x63")
        before = victim.read_bytes()[:1 << 20]
        failed = self.start(expect_failure=True)
        # A version byte alone fails the checksum too: either way it is not opened as ours.
        self.assertEqual(victim.exists() and victim.read_bytes()[:1 << 20] == before
                         or "set aside" in failed.log() or failed.port is not None, True)
        if failed.process.poll() is None:
            failed.stop()

    def test_port_in_use(self):
        with self.start() as cairn:
            other = tempfile.mkdtemp(dir=self.folder.name)
            failed = Cairn(BINARY, self.model, other, *CAPACITY, port=cairn.port,
                           expect_failure=True)
            self.assertEqual(failed.process.returncode, 1)
            self.assertIn(str(cairn.port), failed.log())


class BadRequests(Stack):
    def test_errors_say_what_to_do_and_the_server_lives_on(self):
        self.data.joinpath("token").write_text("secret\n")
        with self.start("--token-file", self.data / "token") as cairn:
            key = {"Authorization": "Bearer secret"}
            ask = lambda body, headers=key: cairn.request("POST", "/v1/chat/completions", body, headers)
            hello = {"model": "test", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
            self.assertEqual(ask(hello, {})[0], 401)
            self.assertEqual(ask(hello, {"Authorization": "Bearer wrong"})[0], 401)
            self.assertEqual(ask("{not json")[0], 400)
            self.assertEqual(ask(b"[" * 100000)[0], 400)
            self.assertEqual(ask(b" " * (17 << 20))[0], 413)
            self.assertEqual(ask({**hello, "model": "other"})[0], 404)
            long = {**hello, "messages": [{"role": "user", "content": "word " * 20000}]}
            status, body = ask(long)
            self.assertEqual(status, 400)
            self.assertEqual(body["error"]["code"], "context_length_exceeded")
            self.assertEqual(ask(hello)[0], 200)
            self.assertEqual(cairn.request("GET", "/health")[0], 200)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
