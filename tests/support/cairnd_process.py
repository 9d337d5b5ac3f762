"""One `cairnd` for tests: started in a temporary folder on free ports, asked with `cairn`."""
import http.client
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

CAIRND, CAIRN, SOURCE = (pathlib.Path(argument) for argument in sys.argv[1:4])
SMALL = ["--target-size", "64 MiB", "--repair-automatic", "false"]


class Cairnd:
    """Use as a context manager; leaves no process behind."""

    def __init__(self, data, *arguments, environment=None):
        self.data = pathlib.Path(data)
        if "--listen-metrics" not in arguments:
            arguments = ("--listen-metrics", "127.0.0.1:0", *arguments)
        self.process = subprocess.Popen(
            [CAIRND, "--data-dir", data, *SMALL, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.log = []
        self._log_grew = threading.Condition()
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.ready = self.process.stdout.readline()
        if not self.ready.startswith("ready"):
            code = self.process.wait(timeout=60)
            self._close()
            raise RuntimeError(f"cairnd ended with {code}:\n{''.join(self.log)}")
        self.address = dict(word.split(":", 1) for word in self.ready.split()[1:])
        self.connect = "unix:" + self.address["unix"]

    def _read_log(self):
        for line in self.process.stderr:
            with self._log_grew:
                self.log.append(line)
                self._log_grew.notify_all()

    def wait_for_log(self, text, timeout=60):
        """True once a line that holds `text` has been written."""
        with self._log_grew:
            return self._log_grew.wait_for(lambda: any(text in line for line in self.log), timeout)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.kill()

    def _close(self):
        self._reader.join(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()

    def stop(self):
        """The exit code after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        self._close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=60)
        self._close()

    def http(self, path, method="GET"):
        """(status, content type, text) of the metrics endpoint."""
        connection = http.client.HTTPConnection(self.address["metrics"], timeout=30)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.getheader("Content-Type"), response.read().decode()
        finally:
            connection.close()

    def cairn(self, *arguments, **options):
        return run(*arguments, "--connect", self.connect, **options)


def run(*arguments, stdin=b"", **options):
    """A finished `cairn`, its output in bytes."""
    return subprocess.run([CAIRN, *map(str, arguments)], input=stdin, capture_output=True,
                          check=False, timeout=300, **options)


class Folder(unittest.TestCase):
    """A temporary folder for each test."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def expect(self, done, code, text=""):
        """`done` ended with `code` and said `text` somewhere."""
        said = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, said)
        self.assertIn(text, said)
        return done


def parse_exposition(text):
    """{(name, labels): value} of Prometheus text; raises ValueError for whatever is not in order."""
    samples, kinds, helps, ended, current = {}, {}, set(), set(), None
    name_pattern = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
    label = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name = line.split(" ")[2]
            if name in helps:
                raise ValueError(f"HELP twice: {line}")
            helps.add(name)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in kinds or kind not in ("counter", "gauge", "histogram"):
                raise ValueError(f"TYPE: {line}")
            if current is not None:
                ended.add(current)
            kinds[name], current = kind, name
            continue
        match = re.fullmatch(rf"({name_pattern})(?:\{{((?:{label},?)*)\}})? (\S+)", line)
        if not match:
            raise ValueError(f"no sample: {line}")
        name, labels, value = match.group(1), match.group(2) or "", float(match.group(match.lastindex))
        family = name
        if current and kinds[current] == "histogram":
            family = re.sub(r"_(bucket|sum|count)$", "", name)
        if family != current or family in ended or family not in helps:
            raise ValueError(f"a sample outside its family: {line}")
        if kinds[family] == "counter" and (not name.endswith("_total") or value < 0):
            raise ValueError(f"a counter without _total, or below zero: {line}")
        key = (name, tuple(sorted((a, b) for a, b in re.findall(label, labels))))
        if key in samples:
            raise ValueError(f"a sample twice: {line}")
        samples[key] = value
    check_histograms(samples, kinds)
    return samples


def check_histograms(samples, kinds):
    for family, kind in kinds.items():
        if kind != "histogram":
            continue
        series = {}
        for (name, labels), value in samples.items():
            if name == family + "_bucket":
                rest = tuple(pair for pair in labels if pair[0] != "le")
                series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
        for rest, buckets in series.items():
            buckets.sort()
            counts = [count for _, count in buckets]
            if counts != sorted(counts) or buckets[-1][0] != float("inf"):
                raise ValueError(f"{family}{rest}: buckets are not cumulative up to +Inf")
            if counts[-1] != samples[(family + "_count", rest)]:
                raise ValueError(f"{family}{rest}: the last bucket is not the count")


def value_of(samples, name, **labels):
    return samples[(name, tuple(sorted(labels.items())))]


def lines_of_json(lines):
    return [json.loads(line) for line in lines]


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
