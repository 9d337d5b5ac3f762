"""deploy/cluster-local: what it starts it ends, also when interrupted; what it refuses it explains.

Usage: cluster_local_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from cairnd_process import CAIRND, main
from local_cluster import LocalCluster, Refused, why_no_namespaces

NO_NAMESPACES = why_no_namespaces()
# One small target, and no cluster: what is tried here is the script.
SETTINGS = ("cluster.enabled=false", "store.target_size=64 MiB")


def processes_of(cluster):
    """Command lines of living processes that name the cluster's folder, but for this test's own."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(cluster.folder).encode() in word for word in words) and int(path.parent.name) != os.getpid():
            found.append(b" ".join(words).decode())
    return found


def namespaces_of(cluster):
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.startswith(cluster.name)]


class Case(unittest.TestCase):
    def not_up(self, nodes=1, **options):
        """A cluster that nobody has started."""
        cluster = LocalCluster(CAIRND, nodes, *SETTINGS, **options)
        self.addCleanup(cluster.__exit__)
        return cluster

    def assert_refused(self, cluster, part, *words):
        with self.assertRaises(Refused) as caught:
            cluster(*words)
        self.assertIn(part, str(caught.exception))
        self.assertNotIn("Traceback", str(caught.exception))

    def answers(self, cluster, source, target, port=9511):
        """Whether `source` hears from `target`."""
        address = cluster.status()[target]["address"]
        done = subprocess.run(cluster.command("exec", source, "curl", "-s", "-m", "1", "-o", "/dev/null",
                                              f"http://{address}:{port}/health"), check=False)
        return done.returncode == 0


class OnLoopback(Case):
    def test_nodes_are_killed_stopped_and_started(self):
        with LocalCluster(CAIRND, 3, *SETTINGS, namespaces=False) as cluster:
            before = cluster.status()
            self.assertEqual({row["state"] for row in before.values()}, {"running"})
            self.assertEqual(len(before), 4)
            self.assertTrue(self.answers(cluster, "1", "3"))
            cluster("stop", "1", "etcd")
            self.assertEqual(cluster.status()["1"]["state"], "stopped")
            cluster("cont", "1", "etcd")
            cluster("kill", "2")
            cluster("end", "3")
            states = {node: row["state"] for node, row in cluster.status().items()}
            self.assertEqual(states, {"1": "running", "2": "dead", "3": "dead", "etcd": "running"})
            self.assert_refused(cluster, "cluster-local start 2", "kill", "2")
            cluster("start", "2", "3")
            after = cluster.status()
            self.assertEqual({row["state"] for row in after.values()}, {"running"})
            self.assertEqual(after["1"]["pid"], before["1"]["pid"])
            self.assertNotEqual(after["2"]["pid"], before["2"]["pid"])
        self.assertEqual(processes_of(cluster), [])

    def test_a_node_starts_empty_when_told(self):
        with LocalCluster(CAIRND, 1, *SETTINGS, namespaces=False) as cluster:
            self.assertIn("namespaces  0", cluster("exec", "1", "cairn", "status"))
            cluster("exec", "1", "cairn", "namespace", "create", "demo", "--shape", "1+0")
            self.assert_refused(cluster, "kill 1` first", "start", "--empty", "1")
            cluster("kill", "1")
            cluster("start", "1")
            self.assertIn("namespaces  1", cluster("exec", "1", "cairn", "status"))
            cluster("kill", "1")
            cluster("start", "--empty", "1")
            self.assertIn("namespaces  0", cluster("exec", "1", "cairn", "status"))

    def test_what_cannot_be_is_explained(self):
        with LocalCluster(CAIRND, 1, *SETTINGS, namespaces=False) as cluster:
            for part, *words in (("there are 1 to 1, and etcd", "kill", "7"), ("two nodes", "cut", "1", "1"),
                                 ("in network namespaces only", "cut", "1", "etcd"),
                                 ("down` ends it", "up"), ("which command", "exec", "1")):
                with self.subTest(words):
                    self.assert_refused(cluster, part, *words)
            cluster("down")
            self.assert_refused(cluster, "no cluster is up", "kill", "1")
            for part, *words in (("SECTION.KEY", "--set", "nonsense"), ("no such program", "--cairnd", "/nonexistent"),
                                 ("small letters", "--name", "A b"), ("three bytes", "--network", "10.77"),
                                 ("store.targets", "--set", "store.targets=0")):
                with self.subTest(words):
                    self.assert_refused(cluster, part, "up", *cluster.up_arguments, *words)
                    self.assertEqual(processes_of(cluster), [])

    def test_without_etcd_it_says_what_to_install(self):
        cluster = self.not_up(namespaces=False)
        done = subprocess.run([sys.executable, *cluster.command("up", *cluster.up_arguments)], capture_output=True,
                              text=True, check=False, env={"PATH": str(cluster.folder)})
        self.assertIn("apt-get install etcd-server", done.stderr)

    def test_interrupted_while_it_starts_it_leaves_nothing(self):
        interrupted_up_leaves_nothing(self, namespaces=False)


@unittest.skipIf(NO_NAMESPACES, f"no network namespaces: {NO_NAMESPACES}")
class InNamespaces(Case):
    def test_links_are_cut_one_way_and_both_and_healed(self):
        with LocalCluster(CAIRND, 3, *SETTINGS) as cluster:
            self.assertTrue(self.answers(cluster, "1", "2"))
            cluster("cut", "1", "2")
            self.assertFalse(self.answers(cluster, "1", "2"))
            self.assertTrue(self.answers(cluster, "1", "3"))
            self.assertTrue(self.answers(cluster, "3", "2"))
            self.assertEqual(cluster.status()["2"]["cut_from"], ["1"])
            cluster("heal")
            self.assertTrue(self.answers(cluster, "1", "2"))
            cluster("cut", "--one-way", "etcd", "1")
            self.assertFalse(self.answers(cluster, "1", "etcd", 2379))
            self.assertEqual(self.pings(cluster, "1", "etcd"), [False, True])
            cluster("heal")
            self.assertTrue(self.answers(cluster, "1", "etcd", 2379))
        self.assertEqual((processes_of(cluster), namespaces_of(cluster)), ([], []))

    def pings(self, cluster, source, target):
        """Whether datagrams arrive: from the target at the source, and the other way."""
        rows = cluster.status()
        receive = ("import socket, sys; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 4000)); "
                   "print('bound', flush=True); sys.stdin.read(); s.settimeout(1); print(s.recv(9))")
        send = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).sendto(b'hello', (sys.argv[1], 4000))"
        arrived = []
        for sender, receiver in ((target, source), (source, target)):
            with subprocess.Popen(cluster.command("exec", receiver, "python3", "-c", receive), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as waiting:
                waiting.stdout.readline()
                cluster("exec", sender, "python3", "-c", send, rows[receiver]["address"])
                waiting.stdin.close()  # It was sent.
                arrived.append("hello" in waiting.stdout.read())
        return arrived

    def test_what_runs_in_its_namespaces_ends_with_them(self):
        with LocalCluster(CAIRND, 1, *SETTINGS) as cluster:
            with subprocess.Popen(cluster.command("exec", "1", "sleep", "1000")) as left:
                while b"sleep" not in pathlib.Path(f"/proc/{left.pid}/cmdline").read_bytes()[:6]:
                    time.sleep(0.01)
                cluster("down")
                self.assertEqual(left.wait(timeout=30), -signal.SIGKILL)

    def test_another_cluster_of_the_name_is_left_alone(self):
        with LocalCluster(CAIRND, 1, *SETTINGS) as cluster:
            other = self.not_up()
            self.assert_refused(other, "another --name", "up", *other.up_arguments, "--name", cluster.name)
            self.assertEqual({row["state"] for row in cluster.status().values()}, {"running"})

    def test_without_root_it_says_so(self):
        cluster = self.not_up()
        os.chown(cluster.folder, 65534, 65534)
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3",
                               *cluster.command("up", *cluster.up_arguments)],
                              capture_output=True, text=True, check=False)
        self.assertIn("use sudo, or `up --loopback`", done.stderr)

    def test_interrupted_while_it_starts_it_leaves_nothing(self):
        interrupted_up_leaves_nothing(self, namespaces=True)


def interrupted_up_leaves_nothing(case, namespaces):
    """At several moments, by what is there then."""
    for number, sign in ((signal.SIGINT, "cluster.json"), (signal.SIGTERM, "etcd/pid"), (signal.SIGINT, "node-1/pid"),
                         (signal.SIGINT, "node-8/pid")):
        cluster = case.not_up(8, namespaces=namespaces)
        with subprocess.Popen(cluster.command("up", *cluster.up_arguments, "--foreground"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as starting:
            while not (cluster.folder / sign).exists():
                case.assertIsNone(starting.poll())
                time.sleep(0.001)
            starting.send_signal(number)
            starting.wait(timeout=100)
        case.assertEqual(processes_of(cluster), [], sign)
        case.assertFalse((cluster.folder / "cluster.json").exists())
        if namespaces:
            case.assertEqual(namespaces_of(cluster), [], sign)


if __name__ == "__main__":
    main()
