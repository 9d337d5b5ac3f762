"""The fault proxy: what passes is unchanged, and comes late, in part or never as it was told."""
import socket
import socketserver
import threading
import time
import unittest

from fault_proxy import FaultProxy


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(1 << 16):
            with self.server.changed:
                self.server.heard += data
                self.server.changed.notify_all()
            self.request.sendall(data)


class EchoServer(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close = True, False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Echo)
        self.heard, self.changed = b"", threading.Condition()

    def heard_soon(self, data):
        with self.changed:
            return self.changed.wait_for(lambda: data in self.heard, timeout=30)

    def handle_error(self, *_unused):
        """A reset connection is what is tried."""


class Proxied(unittest.TestCase):
    def setUp(self):
        self.server = EchoServer()
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.proxy = FaultProxy("%s:%d" % self.server.server_address)
        self.addCleanup(self.proxy.__exit__)
        self.client = self.connect()

    def connect(self):
        host, port = self.proxy.address.split(":")
        client = socket.create_connection((host, int(port)), timeout=30)
        self.addCleanup(client.close)
        return client

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.client.recv(size - len(data))
            if not part:
                break
            data += part
        return data

    def assert_echoed(self, data):
        sender = threading.Thread(target=self.client.sendall, args=(data,))
        sender.start()
        self.assertEqual(self.receive(len(data)), data)
        sender.join()

    def assert_silent(self):
        self.client.settimeout(0.2)  # What comes later than this would pass; it is there to find what comes at once.
        with self.assertRaises(TimeoutError):
            self.client.recv(1)
        self.client.settimeout(30)

    def assert_broken(self, client):
        with self.assertRaises(ConnectionError):
            if not client.recv(1):
                raise ConnectionError("ended")

    def test_bytes_pass_unchanged_and_so_does_their_end(self):
        data = bytes(range(256)) * 40_000
        self.assert_echoed(data)
        self.client.shutdown(socket.SHUT_WR)
        self.assertEqual(self.receive(1), b"")

    def test_delay_makes_all_later_but_not_slower(self):
        self.proxy("delay", 0.1)
        for size in (1, 4_000_000):
            began = time.monotonic()
            self.assert_echoed(b"x" * size)
            self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_a_cut_is_one_way_and_what_was_sent_arrives_once_healed(self):
        self.proxy("cut", "forward")
        self.client.sendall(b"forth")
        self.assert_silent()
        self.assertEqual(self.server.heard, b"")
        self.proxy("heal")
        self.assertEqual(self.receive(5), b"forth")
        self.proxy("cut", "backward")
        self.client.sendall(b"and back")
        self.assertTrue(self.server.heard_soon(b"and back"))
        self.assert_silent()
        self.proxy("heal")
        self.assertEqual(self.receive(8), b"and back")
        self.proxy("cut", "both")
        self.client.sendall(b"!")
        self.assert_silent()

    def test_loss_stalls(self):
        self.proxy("loss", 1, 0.1)
        began = time.monotonic()
        self.assert_echoed(b"x")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_connections_are_closed_and_refused_until_healed(self):
        self.assert_echoed(b"x")
        self.proxy("close")
        self.assert_broken(self.client)
        self.assert_broken(self.connect())
        self.proxy("heal")
        self.client = self.connect()
        self.assert_echoed(b"x")
        self.proxy("break", 1)
        self.client.sendall(b"x")
        self.assert_broken(self.client)

    def test_where_nobody_listens_connections_end(self):
        self.server.shutdown()
        self.server.server_close()
        self.assert_broken(self.connect())

    def test_it_refuses_what_it_does_not_know(self):
        for words in (("burn",), ("delay", "long"), ("cut", "sideways"), ("loss", 1)):
            with self.assertRaisesRegex(RuntimeError, "refuses"):
                self.proxy(*words)
        self.assert_echoed(b"x")


if __name__ == "__main__":
    unittest.main()
