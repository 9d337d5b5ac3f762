"""A store_driver process for tests: started, asked line by line, and killed or stopped when told."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest


class Refused(Exception):
    """The store did not start; the message is what it printed."""


class StoreProcess:
    """`store_driver serve`, or `load`. Use as a context manager; leaves no process behind."""

    def __init__(self, driver, data, verb="serve", *arguments, seed=1, preexec=None, **environment):
        self.log_path = tempfile.NamedTemporaryFile(prefix="cairn-log-", delete=False).name
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [driver, verb, data, str(seed), *map(str, arguments)], text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, preexec_fn=preexec,
                env={**os.environ, **{key: str(value) for key, value in environment.items()}})
        self.pid = self.process.pid
        if self.process.stdout.readline().strip() != "serving":
            code = self.process.wait(timeout=60)
            log = self.log()
            self._close()
            raise Refused(f"exit code {code}: {log}")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.kill()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def lines(self):
        """What it says from now on, until it ends."""
        for line in self.process.stdout:
            yield line.strip()

    def begin(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def answers(self):
        """The lines of the oldest unanswered command."""
        lines = []
        for line in self.lines():
            if line == "done":
                return lines
            lines.append(line)
        raise AssertionError(f"the store ended ({self.process.wait()}): {self.log()[-3000:]}")

    def ask(self, *words):
        self.begin(*words)
        return self.answers()

    def put(self, first, count, verb="put"):
        """Returns (numbers acknowledged, lines of refusals)."""
        return split_puts(self.ask(verb, first, count))

    def get(self, numbers):
        """Returns (numbers read exactly, lines of misses). Fails on a wrong byte."""
        return split_gets(self.ask("get", *numbers))

    def stats(self):
        words = self.ask("stats")[0].split()
        return {key: int(value) for key, value in zip(words[::2], words[1::2])}

    def stop(self):
        """In order; returns what Stop said."""
        said = self.ask("stop")[0]
        self.process.stdin.close()
        code = self.process.wait(timeout=120)
        self._close()
        if code != 0:
            raise AssertionError(f"exit code {code}")
        return said

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def _close(self):
        log = self.log() if os.path.exists(self.log_path) else ""
        if "Sanitizer" in log:
            raise AssertionError(log[log.index("Sanitizer") - 100:][:6000])
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        if os.path.exists(self.log_path):
            os.unlink(self.log_path)


def split_puts(lines):
    acknowledged = [int(line.split()[1]) for line in lines if line.startswith("ack ")]
    refused = [line for line in lines if line.startswith("refused ")]
    assert len(acknowledged) + len(refused) == len(lines), lines
    return acknowledged, refused


def split_gets(lines):
    good = [int(line.split()[1]) for line in lines if line.startswith("ok ")]
    missing = [line for line in lines if line.startswith("missing ")]
    assert len(good) + len(missing) == len(lines), [line for line in lines if "WRONG" in line]
    return good, missing


class StoreTestCase(unittest.TestCase):
    """A folder for each case, and the driver that the command line named."""
    driver = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cairn-store-")
        self.data = os.path.join(self.folder, "data")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, verb="serve", *arguments, **options):
        return StoreProcess(self.driver, options.pop("data", self.data), verb, *arguments, **options)

    def assert_refused(self, *parts, **options):
        """The store does not start, and says all of `parts`. Returns what it said."""
        with self.assertRaises(Refused) as caught:
            self.start(**options)
        for part in ("exit code 3", *parts):
            self.assertIn(part, str(caught.exception))
        return str(caught.exception)

    def assert_puts(self, store, first, count, verb="put"):
        acknowledged, refused = store.put(first, count, verb)
        self.assertEqual(refused, [])
        return acknowledged

    def assert_all_there(self, store, numbers):
        good, missing = store.get(numbers)
        self.assertEqual(missing, [])
        self.assertEqual(good, list(numbers))

    def target_file(self, target, data=None):
        return os.path.join(data or self.data, f"target-{target:02}", "segments")


def flip_bits(path, rng, start=64 * 1024 + 4096, end=8 << 20, stride=2048):
    """One bit in each stride of a target's file, from behind the first segment's header on."""
    with open(path, "r+b", buffering=0) as file:
        for offset in range(start, end, stride):
            at = offset + rng.randrange(stride)
            byte = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << rng.randrange(8)]), at)


def forbid_io_uring():
    """For preexec_fn: this process and its children may not make a ring, as in most containers."""
    import ctypes  # pylint: disable=import-outside-toplevel
    import struct  # pylint: disable=import-outside-toplevel
    io_uring_setup, refuse_eperm, allow = 425, 0x00050001, 0x7FFF0000
    rules = b"".join(struct.pack("HBBI", *rule) for rule in (
        (0x20, 0, 0, 0), (0x15, 0, 1, io_uring_setup), (0x06, 0, 0, refuse_eperm),
        (0x06, 0, 0, allow)))
    memory = ctypes.create_string_buffer(rules)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(memory)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no seccomp filters")
