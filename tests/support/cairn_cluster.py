"""A cluster of `cairnd` processes over a real etcd on this machine, each on ports of its own."""
import concurrent.futures
import http.client
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request


def free_ports(count):
    """Ports that were free a moment ago, below those that the system gives to whoever connects or binds."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = max(int(file.read().split()[0]), 20_000)
    ports = set()
    while len(ports) < count:
        port = random.randrange(10_000, end)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                ports.add(port)
            except OSError:
                pass
    return list(ports)


def wait_for(done, seconds, what):
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(what() if callable(what) else what)
        time.sleep(0.2)


class Etcd:
    """One etcd, ready when it is made. `tls` (tls_files.Files): it wants such certificates too."""

    def __init__(self, folder, tls=None):
        if shutil.which("etcd") is None:
            raise FileNotFoundError("etcd")
        port, peer_port = free_ports(2)
        self.client = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        peer = f"http://127.0.0.1:{peer_port}"
        self.arguments = [
            "etcd", "--name", "test", "--data-dir", str(folder / "etcd"),
            "--listen-client-urls", self.client, "--advertise-client-urls", self.client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", "test=" + peer]
        self.context = None
        if tls:
            self.arguments += ["--client-cert-auth", "--cert-file", tls.cert, "--key-file", tls.key,
                               "--trusted-ca-file", tls.ca]
            self.context = ssl.create_default_context(cafile=tls.ca)
            self.context.load_cert_chain(tls.cert, tls.key)
        self.log = open(folder / "etcd.log", "ab")  # pylint: disable=consider-using-with
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.arguments, stdout=self.log, stderr=self.log)
        wait_for(self._answers, 60, "etcd does not start")

    def _answers(self):
        try:
            with urllib.request.urlopen(self.client + "/health", timeout=5,
                                        context=self.context) as answer:
                return b"true" in answer.read()
        except (urllib.error.URLError, OSError):
            return False

    def stop(self):
        self.process.kill()
        self.process.wait(timeout=60)

    def close(self):
        self.stop()
        self.log.close()


class Node:
    """One `cairnd` of a cluster; started again it is the same node."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.name = f"node-{number}"
        self.data = cluster.folder / self.name
        self.port, self.metrics = free_ports(2)
        self.log_path = cluster.folder / f"{self.name}.log"
        self.process = None
        self.ended = False  # By the test.
        self.connect = f"unix:{self.data}/cairn.sock"

    def start(self, *arguments, etcd=None):
        """Returns when it is told to start; see Cluster.await_ready."""
        self.ended = False
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.cluster.cairnd, "--data-dir", self.data, "--targets", "1",
                 "--target-size", self.cluster.target_size,
                 "--cluster-enabled", "true", "--cluster-node", self.name,
                 "--cluster-listen", f"127.0.0.1:{self.port}",
                 "--cluster-etcd", etcd or self.cluster.etcd.client,
                 "--cluster-secret-file", self.cluster.secret,
                 "--listen-metrics", f"127.0.0.1:{self.metrics}",
                 *self.cluster.arguments, *arguments],
                stdout=log, stderr=log)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.ended = True
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self):
        """The exit code after SIGTERM."""
        self.ended = True
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def http(self, path):
        """(status, text); (0, why) when it does not answer."""
        connection = http.client.HTTPConnection(f"127.0.0.1:{self.metrics}", timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    def ready(self):
        return self.http("/readyz")[0] == 200

    def log(self):
        return self.log_path.read_text(errors="replace")

    def cairn(self, *arguments, stdin=b""):
        """A finished `cairn`, its output in bytes."""
        return subprocess.run([self.cluster.cairn, *map(str, arguments), "--connect", self.connect],
                              input=stdin, capture_output=True, check=False, timeout=120)


class Cluster:
    """`count` nodes of one target each, started. Use as a context manager: leaves no process."""

    def __init__(self, cairnd, cairn, folder, count=12, target_size="64 MiB", arguments=(),
                 etcd_tls=None):
        self.cairnd, self.cairn, self.folder = cairnd, cairn, pathlib.Path(folder)
        self.target_size, self.arguments = target_size, list(arguments)
        self.secret = self.folder / "secret"
        self.secret.write_text("a secret that all nodes share\n")
        self.etcd = Etcd(self.folder, etcd_tls)
        self.nodes = []
        for _ in range(count):
            self.add()

    def add(self, *arguments, name=None, etcd=None):
        node = Node(self, len(self.nodes))
        node.name = name or node.name
        self.nodes.append(node)
        node.start(*arguments, etcd=etcd)
        return node

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for node in self.nodes:
            if node.running():
                node.kill()
        self.etcd.close()

    def living(self):
        """All but those that the test has ended. A node that has ended by itself is a fault."""
        for node in self.nodes:
            if not node.ended and not node.running():
                raise AssertionError(f"{node.name} has ended by itself: {node.log()[-3000:]}")
        return [node for node in self.nodes if node.running()]

    def await_ready(self, seconds=120):
        wait_for(lambda: all(node.ready() for node in self.living()), seconds,
                 lambda: "not ready: " + "; ".join(
                     f"{node.name}: {node.http('/readyz')}" for node in self.living()
                     if not node.ready()) + "\n" + self.living()[0].log()[-3000:])

    def each(self, work, items):
        """work(item) for all, several at a time; the results in order."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
            return list(pool.map(work, items))
