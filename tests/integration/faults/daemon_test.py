"""cairnd and its clients: either is killed at any moment.

Usage: daemon_test.py CAIRND STORE_DRIVER [unittest arguments]
"""
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

from store_process import StoreTestCase

CLIENTS = int(os.environ.get("DAEMON_CLIENTS", "1000"))
NOW_EMPTY = ("sessions", "connections", "regions", "region_bytes", "requests_in_flight",
             "payload_bytes")


class Daemon:
    """One `cairnd` on a unix socket, any TCP port and any port for metrics."""

    def __init__(self, program, data, *flags):
        self.log = open(data + ".log", "a+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(
            [program, "--data-dir", data, "--target-size", "64MiB", "--listen-tcp", "127.0.0.1:0",
             "--listen-metrics", "127.0.0.1:0", *flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        ready = self.process.stdout.readline()
        addresses = dict(re.findall(r"(unix|tcp|metrics):(\S+)", ready))
        if len(addresses) != 3:
            self.process.wait(timeout=60)
            said = self.said()
            self.__exit__()
            raise RuntimeError(f"cairnd does not start: {ready}{said}")
        self.unix, self.tcp = "unix:" + addresses["unix"], "tcp:" + addresses["tcp"]
        self.metrics_address = addresses["metrics"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def said(self):
        self.log.seek(0)
        return self.log.read()[-4000:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=30) as page:
            text = page.read().decode()
        return {name: float(value)
                for name, value in re.findall(r"^(\w+) ([0-9.e+-]+)$", text, re.MULTILINE)}

    def held(self):
        """What the server holds for its clients."""
        metrics = self.metrics()
        return {name: metrics[f"cairn_server_{name}"] for name in NOW_EMPTY}

    def until_nothing_is_held(self):
        """Metrics are a sample of the last second; sessions of the dead end at once, or by timeout."""
        for _ in range(300):
            held = self.held()
            if not any(held.values()):
                return
            time.sleep(0.1)
        raise AssertionError(f"still held for the dead: {held}")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


class DaemonTest(StoreTestCase):
    daemon_program = None

    def daemon(self, *flags):
        return Daemon(self.daemon_program, self.data, *flags)

    def live_and_die(self, address, number):
        """A client with a lease, a region, puts and gets on their way; killed. Returns its leases."""
        rng = random.Random(number)
        with self.start("lease", 1000 + 64 * number, data=address) as client:
            first = next(client.lines())
            for line in client.lines():
                self.assertNotIn("WRONG", line)
                if rng.random() < 0.3:
                    break
            client.signal(signal.SIGKILL)
        return first

    def many(self, daemon, numbers):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            return list(pool.map(lambda n: self.live_and_die((daemon.unix, daemon.tcp)[n % 2], n),
                                 numbers))

    def test_clients_that_come_and_die_leave_nothing(self):
        with self.daemon("--leases-max", "64") as daemon:
            with self.start(data=daemon.unix) as client:
                acknowledged = self.assert_puts(client, 0, 64)
            self.many(daemon, range(40))
            daemon.until_nothing_is_held()
            descriptors = daemon.descriptors()
            self.many(daemon, range(40, CLIENTS // 4))
            resident = daemon.resident_kib()
            self.many(daemon, range(CLIENTS // 4, CLIENTS))
            daemon.until_nothing_is_held()
            self.assertLessEqual(daemon.descriptors(), descriptors + 2)
            # The cache of hot blocks fills meanwhile: 64 MiB.
            self.assertLess(daemon.resident_kib(), resident + (64 + 48) * 1024)
            # Leases of the dead are free again: there are far fewer than there were clients.
            self.assertEqual(self.leases_that_are_given(daemon), 40)
            with self.start(data=daemon.tcp) as client:
                client.get(acknowledged)  # Exact, or evicted for what the dead have put.
            self.assertEqual(daemon.stop(), 0, daemon.said())

    def leases_that_are_given(self, daemon):
        given = 0
        clients = []
        for _ in range(40):
            clients.append(self.start("lease", 500000, data=daemon.unix))
            given += next(clients[-1].lines()) == "leased"
        for client in clients:
            client.kill()
        return given

    def test_cairnd_is_killed_under_load_and_nothing_acknowledged_is_lost(self):
        acknowledged = []
        rng = random.Random(5)
        for loop in range(10):
            with self.daemon() as daemon:
                first, until = 64 * 64 * loop, rng.randrange(5, 60)
                with self.start("load", first, data=(daemon.unix, daemon.tcp)[loop % 2]) as client:
                    for seen, line in enumerate(client.lines()):
                        if line.startswith("ack "):
                            acknowledged.append(int(line.split()[1]))
                        if seen == until:
                            daemon.process.kill()
                        if seen > until and not line.startswith("ack "):
                            break  # Refused, as nobody is there.
                        self.assertNotIn("WRONG", line)
        with self.daemon() as daemon, self.start(data=daemon.unix) as client:
            self.assert_all_there(client, acknowledged)

    def test_cairnd_that_is_stopped_a_while_goes_on_with_its_clients(self):
        with self.daemon() as daemon, self.start("load", 0, data=daemon.unix) as client:
            lines = client.lines()
            for _ in range(4):
                for _ in range(20):
                    self.assertTrue(next(lines).startswith("ack "))
                daemon.process.send_signal(signal.SIGSTOP)
                time.sleep(0.5)  # How long it stands still is what is tried.
                daemon.process.send_signal(signal.SIGCONT)
            for _ in range(20):
                self.assertTrue(next(lines).startswith("ack "))

    def test_a_second_cairnd_on_the_folder_is_refused(self):
        with self.daemon():
            with self.assertRaisesRegex(RuntimeError, "in use"):
                self.daemon()


if __name__ == "__main__":
    DaemonTest.daemon_program, StoreTestCase.driver = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
