"""Real `cairnd` that speak TLS 1.3 to each other, and to an etcd that wants certificates.

Usage: tls_test.py CAIRND CAIRN [unittest arguments]; skipped (77) where there is no etcd.
"""
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

from cairn_cluster import Cluster, wait_for
from tls_files import Authority, tls_flags

CAIRND, CAIRN = sys.argv[1:3]


class EncryptedCluster(unittest.TestCase):
    """Three nodes and an etcd, with certificates of one authority."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-tls-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.ours, self.others = (Authority(self.folder, name) for name in ("ours", "others"))
        self.for_etcd = tls_flags("--cluster-etcd", self.ours.issue())
        self.cluster = Cluster(CAIRND, CAIRN, self.folder, count=0, etcd_tls=self.ours.issue())
        self.addCleanup(self.cluster.__exit__)

    def add(self, files, name=None):
        """A node that etcd takes; `files` None: without certificates for other nodes."""
        own = tls_flags("--cluster-tls", files) if files else []
        return self.cluster.add(*self.for_etcd, *own, name=name)

    def greet(self, node, files):
        """The TLS version that `node` speaks to who shows `files`; None: it refuses."""
        context = ssl.create_default_context(cafile=self.ours.ca)
        if files:
            context.load_cert_chain(files.cert, files.key)
        try:
            with socket.create_connection(("127.0.0.1", node.port), timeout=10) as plain, \
                    context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
                tls.settimeout(0.3)
                try:
                    tls.recv(1)  # A refusal comes when the handshake is over for this side.
                except TimeoutError:
                    return tls.version()
        except (ssl.SSLError, ConnectionError):
            pass
        return None

    def expect_words(self, node, *words):
        wait_for(lambda: any(word in node.log() for word in words), 20,
                 lambda: f"{node.name} does not say {words}: {node.log()[-3000:]}")

    def get(self, node):
        return node.cairn("get", "kv", "key")

    def test_nodes_with_certificates_are_one_store_and_others_are_kept_out(self):
        nodes = [self.add(self.ours.issue()) for _ in range(3)]
        self.cluster.await_ready()
        data = random.Random(1).randbytes(300_000)
        done = nodes[0].cairn("namespace", "create", "kv", "--shape", "2+1")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        done = nodes[0].cairn("put", "kv", "key", stdin=data)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        for node in nodes:
            self.assertEqual(self.get(node).stdout, data, node.log()[-2000:])
        self.assertEqual(self.greet(nodes[1], self.ours.issue()), "TLSv1.3")
        self.assertIsNone(self.greet(nodes[1], None))
        self.assertIsNone(self.greet(nodes[1], self.others.issue()))

        # Both know the secret, and etcd lets them in.
        stranger = self.add(self.others.issue(), "stranger")
        plain = self.add(None, "plain")
        self.expect_words(stranger, "certificate is refused", "alert unknown ca")
        self.expect_words(plain, "it speaks TLS, and this node has no certificate")
        for node in (stranger, plain):
            self.assertNotEqual(self.get(node).stdout, data, node.name)
            node.kill()
        for node in nodes:
            # They were in the map: what had its home there gets another when they are missed.
            wait_for(lambda node=node: self.get(node).stdout == data, 30, node.log)
            self.expect_words(node, "its certificate is refused", "no TLS 1.3 session")

    def test_certificates_are_replaced_while_it_runs(self):
        files = self.ours.issue()
        node = self.add(files)
        self.cluster.await_ready()

        def shown():
            return ssl.get_server_certificate(("127.0.0.1", node.port), timeout=10)

        def end():
            found = re.search(r'^cairn_tls_certificate_end_seconds\{use="nodes"\} (\S+)$', node.http("/metrics")[1], re.M)
            return float(found[1])

        before, first_end = shown(), end()
        self.assertEqual(ssl.PEM_cert_to_DER_cert(files.cert.read_text()), ssl.PEM_cert_to_DER_cert(before))
        longer = self.ours.issue(days=30)
        # Before its key: what was good stays in use.
        os.replace(longer.cert, files.cert)
        node.signal(signal.SIGHUP)
        self.expect_words(node, "stays in use")
        self.assertEqual(shown(), before)
        os.replace(longer.key, files.key)
        node.signal(signal.SIGHUP)
        self.expect_words(node, "the certificates for nodes have changed")
        self.assertNotEqual(shown(), before)
        self.assertEqual(self.greet(node, self.ours.issue()), "TLSv1.3")
        wait_for(lambda: end() > first_end + 20 * 86400, 20, node.log)

    def test_etcd_wants_a_certificate(self):
        trusting = ("--cluster-etcd-ca-file", self.ours.ca)
        shown = self.others.issue()._replace(ca=self.ours.ca)
        refused = {
            "client didn't provide a certificate": self.cluster.add(*trusting, name="bare"),
            "certificate signed by unknown authority":
                self.cluster.add(*tls_flags("--cluster-etcd", shown), name="strange"),
            # This one does not take etcd's certificate; some versions cannot read that it says so.
            "unknown certificate authority|bad record MAC":
                self.cluster.add(*tls_flags("--cluster-etcd", self.others.issue()), name="wary")}
        log = self.folder / "etcd.log"
        for words, node in refused.items():
            wait_for(lambda words=words: re.search(words, log.read_text()), 20,
                     lambda words=words, node=node: f"etcd does not say '{words}': "
                     f"{log.read_text()[-2000:]}\n{node.log()[-2000:]}")
        for node in refused.values():
            self.assertFalse(node.ready(), node.name)
            self.assertNotIn("joined", node.log())


class CheckConfig(unittest.TestCase):
    """Files that cannot be used are found before anything starts."""

    def test_files_are_read(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            authority = Authority(folder, "ca")
            files = authority.issue()
            config = folder / "cairnd.toml"

            def check(files, code, words):
                config.write_text(
                    "[cluster]\nenabled = true\nnode = 'a'\n"
                    f"tls_cert_file = '{files.cert}'\ntls_key_file = '{files.key}'\n"
                    f"tls_ca_file = '{files.ca}'\n")
                done = subprocess.run([CAIRND, "--check-config", config], capture_output=True,
                                      check=False, timeout=60)
                said = (done.stdout + done.stderr).decode()
                self.assertEqual(done.returncode, code, said)
                self.assertIn(words, said)

            check(files, 0, "sound")
            check(files._replace(key=authority.issue().key), 2, "has not the key of the certificate")
            check(files._replace(ca=folder / "none.pem"), 2, "none.pem")
            check(files._replace(key=""), 2, "set all three or none")


if __name__ == "__main__":
    if shutil.which("etcd") is None or shutil.which("openssl") is None:
        print("skipped: etcd or openssl is not installed")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
