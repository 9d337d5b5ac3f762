"""A cluster of deploy/cluster-local for tests: up in a temporary folder, and down whatever happens."""
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "deploy/cluster-local"


class Refused(Exception):
    """cluster-local failed; the message is what it said."""


def why_no_namespaces():
    """Empty where network namespaces can be made, or the reason."""
    if os.geteuid() != 0:
        return "not root"
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    name = f"probe-{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip()
    # Entering one makes mounts of its own, which some containers and chroots forbid.
    entered = subprocess.run(["ip", "netns", "exec", name, "true"], capture_output=True, text=True,
                             check=False)
    subprocess.run(["ip", "netns", "del", name], check=True)
    return entered.stderr.strip() if entered.returncode != 0 else ""


def loopback_network():
    """Most likely no other test has it."""
    return f"127.{random.randrange(1, 255)}.{random.randrange(255)}"


class LocalCluster:
    """Use as a context manager: leaves no process and no namespace behind."""

    def __init__(self, cairnd, nodes, *settings, namespaces=True, network=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-cluster-"))
        self.name = f"t{os.getpid()}-{random.randrange(1000)}"
        self.nodes = [str(number) for number in range(1, nodes + 1)]
        self.up_arguments = ["--nodes", nodes, "--name", self.name, "--cairnd", cairnd]
        if not namespaces:
            self.up_arguments += ["--loopback", "--network", network or loopback_network()]
        for setting in settings:
            self.up_arguments += ["--set", setting]

    def __enter__(self):
        try:
            self("up", "--timeout", "120", *self.up_arguments)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *unused):
        self("down")
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words):
        return [str(word) for word in (SCRIPT, "--folder", self.folder, *words)]

    def __call__(self, *words):
        """What the script printed."""
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode != 0:
            raise Refused(done.stderr.strip() or f"exit code {done.returncode}")
        return done.stdout

    def status(self):
        return {row["node"]: row for row in json.loads(self("status", "--json"))}

    def connect(self, node):
        return f"unix:{self.folder}/node-{node}/data/cairn.sock"

    def log(self, node):
        return (self.folder / f"node-{node}/log").read_text(errors="replace")
