"""Every store verb of `cairn` against a running cairnd.

Usage: store_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

from cairnd_process import CAIRN, Cairnd, Folder, main, parse_exposition, run
from tls_files import Authority


def content(seed, size):
    return random.Random(seed).randbytes(size)


class Encrypted(Folder):
    """TCP with certificates of both sides, of one authority."""

    def test_tls_with_certificates_of_both_sides(self):
        cert, key, ca = Authority(self.folder, "authority").issue()
        token = self.folder / "token"
        token.write_text("letmein\n")
        with Cairnd(self.folder / "data", "--listen-tcp", "127.0.0.1:0", "--listen-tls-cert-file",
                    cert, "--listen-tls-key-file", key, "--listen-tls-client-ca-file", ca,
                    "--listen-admin-token-file", token) as daemon:
            plain = daemon.address["tcp"]
            tls = ("--connect", f"tls:{plain}", "--admin-token-file", token)
            whole = (*tls, "--tls-ca-file", ca, "--tls-cert-file", cert, "--tls-key-file", key)
            self.expect(run("namespace", "create", "s", "--fingerprint", "f", *whole), 0)
            data = content(1, 3 << 20)
            self.expect(run("put", "s", "k", *whole, stdin=data), 0)
            self.assertEqual(self.expect(run("get", "s", "k", *whole), 0).stdout, data)
            self.expect(run("get", "s", "k", *tls), 2, "certificate is refused")
            self.expect(run("get", "s", "k", *tls, "--tls-ca-file", ca), 1, "certificate required")
            self.expect(run("get", "s", "k", "--connect", plain), 1, "expect TLS")


class Store(Folder):
    """One cairnd for the class, one namespace for each test."""

    @classmethod
    def setUpClass(cls):
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="cairn-cli-"))
        cls.daemon = Cairnd(cls.data / "data", "--listen-tcp", "127.0.0.1:0")

    @classmethod
    def tearDownClass(cls):
        code = cls.daemon.stop()
        shutil.rmtree(cls.data, ignore_errors=True)
        if code != 0:
            raise RuntimeError(f"cairnd ended with {code}")

    def setUp(self):
        super().setUp()
        self.space = self.id()
        self.ok("namespace", "create", self.space, "--fingerprint", "f")

    def cairn(self, *arguments, **options):
        return self.daemon.cairn(*arguments, **options)

    def ok(self, *arguments, **options):
        return self.expect(self.cairn(*arguments, **options), 0)

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--json").stdout)


class Namespaces(Store):
    def test_create_list_delete(self):
        self.ok("namespace", "create", "other", "--fingerprint", "x", "--shape", "4+2",
                "--run-blocks", "1", "--ttl", "2 h", "--fixed", "--quota", "10 MiB")
        listed = {space["name"]: space for space in self.json("namespace", "list")["namespaces"]}
        other = listed["other"]
        self.assertEqual((other["data_shards"], other["parity_shards"]), (4, 2))
        self.assertEqual((other["run_blocks"], other["ttl_seconds"]), (1, 7200))
        self.assertEqual(other["retention"], "fixed")
        self.assertEqual(other["quota_bytes"], 10 << 20)
        self.assertIn(b"other", self.ok("namespace", "list").stdout)
        self.ok("put", "other", "k", stdin=b"secret")
        self.ok("namespace", "delete", "other", "--yes")
        self.expect(self.cairn("get", "other", "k"), 3, "there is no namespace 'other'")
        self.ok("namespace", "create", "other", "--fingerprint", "x", "--shape", "4+2")
        self.expect(self.cairn("get", "other", "k"), 3, "is a miss")

    def test_refusals(self):
        self.expect(self.cairn("namespace", "create", self.space, "--fingerprint", "g"), 1)
        self.expect(self.cairn("namespace", "delete", self.space), 2, "say --yes")
        self.expect(self.cairn("namespace", "delete", "absent", "--yes"), 3)
        self.expect(self.cairn("namespace", "create", "x", "--shape", "10-2"), 2, "10+2")
        self.expect(self.cairn("namespace", "create", "x", "--shape", "40+2"), 2, "1 to 32")
        self.expect(self.cairn("namespace", "create", "x", "--ttl", "3"), 2, "'250 ms'")
        self.expect(self.cairn("namespace", "create", "x", "--ttl", "1 ms"), 2, "out of range")
        self.expect(self.cairn("namespace", "create", "x" * 129), 2)
        self.expect(self.cairn("namespace"), 2)
        self.expect(self.cairn("namespace", "create"), 2, "NAME")

    def test_a_token_is_asked_for(self):
        token = self.write("token", "s3cret\n")
        self.ok("namespace", "create", "locked", "--token-file", token)
        self.expect(self.cairn("put", "locked", "k", stdin=b"x"), 2, "--token-file")
        wrong = self.write("wrong", "guess\n")
        self.expect(self.cairn("put", "locked", "k", "--token-file", wrong, stdin=b"x"), 1)
        self.ok("put", "locked", "k", "--token-file", token, stdin=b"x")
        self.assertEqual(self.ok("get", "locked", "k", "--token-file", token).stdout, b"x")


class Blocks(Store):
    def test_through_files_and_pipes(self):
        for size in (1, 4095, 4096, 100_000, 3 << 20):
            data = content(size, size)
            path = self.write("in", data)
            self.ok("put", self.space, f"file-{size}", path)
            self.ok("put", self.space, f"pipe-{size}", stdin=data)
            out = self.folder / "out"
            self.ok("get", self.space, f"file-{size}", "-o", out)
            self.assertEqual(out.read_bytes(), data)
            self.assertEqual(self.ok("get", self.space, f"pipe-{size}").stdout, data)

    def test_over_tcp(self):
        data = content(1, 2 << 20)
        self.ok("put", self.space, "k", stdin=data)
        tcp = self.daemon.address["tcp"]
        # Without an admin token TCP clients may not ask for namespaces by name.
        self.expect(run("get", self.space, "k", "--connect", tcp), 2)

    def test_keys(self):
        self.ok("put", self.space, "68656c6c6f", "--hex", stdin=b"1")
        self.assertEqual(self.ok("get", self.space, "hello").stdout, b"1")
        block_id = hashlib.sha256(b"hello").hexdigest()[:32]
        self.assertEqual(self.ok("get", self.space, block_id, "--id").stdout, b"1")
        self.expect(self.cairn("get", self.space, "xyz", "--hex"), 2, "hex digits")
        self.expect(self.cairn("get", self.space, "zz", "--hex"), 2, "not hex digits")
        self.expect(self.cairn("get", self.space, "12", "--id"), 2, "32 hex digits")
        self.expect(self.cairn("get", self.space, "k" * 513), 2, "1 to 512 bytes")
        self.expect(self.cairn("get", self.space, ""), 2, "1 to 512 bytes")
        self.expect(self.cairn("get", self.space, "x", "--id", "--hex"), 2)

    def test_misses_and_bad_input(self):
        self.expect(self.cairn("get", self.space, "absent"), 3, "is a miss")
        self.expect(self.cairn("delete", self.space, "absent"), 3, "is a miss")
        self.expect(self.cairn("get", "absent", "k"), 3, "there is no namespace 'absent'")
        self.expect(self.cairn("put", self.space, "k"), 2, "is empty")
        self.expect(self.cairn("put", self.space, "k", self.folder / "none"), 2, "cannot open it")
        self.expect(self.cairn("put", self.space, "k", self.folder), 2, "cannot")
        large = self.folder / "large"
        with open(large, "wb") as file:
            file.truncate((64 << 20) + 1)
        self.expect(self.cairn("put", self.space, "k", large), 2, "larger than a block can be")
        self.expect(self.cairn("put", self.space, "k", "--ttl", "x", stdin=b"1"), 2, "not a time")
        self.expect(self.cairn("put", self.space, "k", "--keep-until", "x", stdin=b"1"), 2, "no time")
        self.expect(self.cairn("put", self.space, "k", "--keep-until", "2001-01-01T00:00:00Z",
                               stdin=b"1"), 2, "has passed")
        self.ok("put", self.space, "k", stdin=b"1")
        self.expect(self.cairn("get", self.space, "k", "-o", self.folder / "no/such"), 2, "cannot")

    def test_delete(self):
        self.ok("put", self.space, "k", stdin=b"1")
        self.ok("delete", self.space, "k")
        self.expect(self.cairn("get", self.space, "k"), 3, "is a miss")

    def test_ttl(self):
        self.ok("put", self.space, "k", "--ttl", "1 s", stdin=b"1")
        for _ in range(400):
            done = self.cairn("inspect", self.space, "k")  # Does not refresh it, as get would.
            if done.returncode == 3:
                break
        self.expect(self.cairn("get", self.space, "k"), 3, "is a miss")

    def test_keep_until(self):
        self.ok("namespace", "create", "kept", "--quota", "1 MiB")
        self.ok("put", "kept", "k", "--keep-until", "1 h", stdin=b"1" * 5000)
        block = self.json("ls", "kept")["blocks"][0]
        self.assertGreater(block["keep_until_ms"], 0)

    def test_list_and_inspect(self):
        for i in range(5):
            self.ok("put", self.space, f"k{i}", "--durable", stdin=content(i, 1000 + i))
        listed = self.json("ls", self.space)
        self.assertEqual(sorted(block["size"] for block in listed["blocks"]),
                         [1000, 1001, 1002, 1003, 1004])
        self.assertFalse(listed["more"])
        self.assertTrue(self.json("ls", self.space, "--limit", "2")["more"])
        self.assertEqual(len(self.json("ls", self.space, "--all")["blocks"]), 5)
        self.assertIn(b"There are more", self.ok("ls", self.space, "--limit", "2").stdout)
        name = listed["blocks"][0]["name"]
        details = self.json("inspect", self.space, name, "--id", "--verify")
        self.assertEqual(len(details["shards"]), details["data_shards"] + details["parity_shards"])
        self.assertTrue(all(shard["verified"] for shard in details["shards"]))
        self.assertIn(b"verified", self.ok("inspect", self.space, "k0", "--verify").stdout)
        self.expect(self.cairn("inspect", self.space, "absent"), 3, "is a miss")
        self.expect(self.cairn("ls", "absent"), 3)
        self.expect(self.cairn("ls", self.space, "--limit", "0"), 2)


class Operators(Store):
    def test_alone_it_is_no_cluster(self):
        for verb in (("cluster",), ("cluster", "--check"), ("drain", "node-1"),
                     ("drain", "--undo", "--target", "5")):
            self.expect(self.cairn(*verb), 2, "not part of a cluster")
        for verb in (("drain",), ("drain", "node-1", "--target", "5")):
            self.expect(self.cairn(*verb), 2, "either a NODE or --target ID")
        self.expect(self.cairn("drain", "--target", "0"), 2, "--target")

    def test_status(self):
        status = self.json("status")
        self.assertTrue(status["healthy"], status["concerns"])
        self.assertEqual(len(status["targets"]), 12)
        self.assertIn(b"all is well", self.ok("status", "--check").stdout)

    def test_targets(self):
        targets = self.json("targets")["targets"]
        self.assertEqual([target["place"] for target in targets], list(range(12)))
        self.assertEqual({target["state"] for target in targets}, {"serving"})
        self.assertIn(b"target-07", self.ok("targets").stdout)

    def test_scrub_and_repair(self):
        self.ok("put", self.space, "k", stdin=content(3, 1 << 20))
        for verb in ("scrub", "repair"):
            done = json.loads(self.ok(verb, "start", "--wait", "--json").stdout)
            self.assertFalse(done["running"])
            self.assertEqual(done["shards_failed"], 0)
            self.assertGreaterEqual(self.json(verb, "status")["passes"], 1)
            self.assertIn(b"is not running", self.ok(verb, "status").stdout)
            self.ok(verb, "stop")
            self.expect(self.cairn(verb, "start", "--rate", "12"), 2, "'64 MiB'")

    def test_metrics(self):
        samples = parse_exposition(self.ok("metrics").stdout.decode())
        self.assertIn("cairn_store_puts_total", {name for name, _ in samples})
        self.assertIn("puts", self.json("metrics"))

    def test_replay(self):
        trace = self.folder / "trace.jsonl"
        with open(trace, "w", encoding="utf-8") as file:
            for i in range(20):
                blocks = list(range(i // 2, i // 2 + 4))
                file.write(json.dumps({"timestamp": i * 1000, "input_length": 512 * 4,
                                       "output_length": 1, "hash_ids": blocks}) + "\n")
        done = json.loads(self.ok("replay", trace, "--json").stdout)
        self.assertEqual((done["requests"], done["wrong_bytes"]), (20, 0))
        self.assertGreater(done["hit_rate"], 0.4)
        self.expect(run("replay", trace), 2, "say where")

    def test_bench(self):
        done = json.loads(self.ok("bench", "--bytes", "8 MiB", "--block-size", "128 KiB",
                                  "--json").stdout)
        for figure in ("put_ratio", "get_ratio", "lookup_ids_per_second"):
            self.assertGreater(done[figure], 0)
        self.assertTrue(done["device_measured"])
        self.expect(self.cairn("bench", "--bytes", "1 MiB"), 2, "at least 64 blocks")


class Pipes(Store):
    def test_a_reader_that_goes_away_is_no_error_worth_a_word(self):
        self.ok("put", self.space, "k", stdin=content(1, 4 << 20))
        with subprocess.Popen([CAIRN, "get", self.space, "k", "--connect", self.daemon.connect],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.stdout.close()
            self.assertEqual(process.wait(timeout=60), 141)
            self.assertEqual(process.stderr.read(), b"")

    def test_no_escape_sequences_when_piped(self):
        for verb in (["status"], ["targets"], ["namespace", "list"], ["ls", self.space]):
            done = self.ok(*verb)
            self.assertNotIn(b"\x1b", done.stdout + done.stderr)
            self.assertEqual(done.stderr, b"")


class CairnUp(Folder):
    def test_it_opens_the_socket_of_its_store(self):
        model, data = self.folder / "tiny.gguf", self.folder / "data"
        self.expect(run("tiny-model", model), 0)
        with subprocess.Popen(
                [CAIRN, "up", "--model", model, "--data", data, "--port", "0", "--capacity",
                 "1200MiB", "--kv-memory", "64MiB"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                self.assertIn(b"ready", process.stdout.readline())
                listed = json.loads(self.expect(
                    run("namespace", "list", "--json", "--data-dir", data), 0).stdout)
                self.assertTrue(listed["namespaces"][0]["name"].startswith("tiny@"))
                self.expect(run("status", "--data-dir", data), 0, "all is well")
            finally:
                process.terminate()
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0)


class TargetLoss(Folder):
    def test_reads_without_two_targets(self):
        data = content(9, 2 << 20)
        with Cairnd(self.folder / "data") as daemon:
            self.expect(daemon.cairn("namespace", "create", "n"), 0)
            self.expect(daemon.cairn("put", "n", "k", "--durable", stdin=data), 0)
            self.assertEqual(daemon.stop(), 0)
        for target in ("target-02", "target-09"):
            shutil.rmtree(self.folder / "data" / target)
        with Cairnd(self.folder / "data") as daemon:
            self.assertEqual(self.expect(daemon.cairn("get", "n", "k"), 0).stdout, data)
            status = json.loads(self.expect(daemon.cairn("status", "--json"), 0).stdout)
            self.assertEqual(status["stats"]["degraded_reads"], 1)
            self.expect(daemon.cairn("repair", "start", "--wait"), 0)
            self.assertEqual(daemon.stop(), 0)


if __name__ == "__main__":
    main()
