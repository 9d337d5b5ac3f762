"""One `cairn up` process for tests: started on a free port, asked over HTTP, killed when told."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import threading


class Cairn:
    """Use as a context manager; leaves no process behind."""

    def __init__(self, binary, model, data, *arguments, port=0, expect_failure=False):
        self.data = pathlib.Path(data)
        command = [str(binary), "up", "--model", str(model), "--model-name", "test",
                   "--data", str(data), "--port", str(port), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.errors = []
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()
        ready = self.process.stdout.readline()
        match = re.fullmatch(r"ready (\d+)\n", ready)
        self.port = int(match.group(1)) if match else None
        if self.port is None:
            self.process.wait(timeout=60)
            self._close()
            if not expect_failure:
                raise RuntimeError("cairn did not start:\n" + "".join(self.errors))

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.stop()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=120)
        self._close()
        if code != 0:
            raise RuntimeError(f"cairn ended with {code}:\n" + "".join(self.errors))

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        self._close()

    def _close(self):
        self._reader.join(timeout=10)
        self.process.stdout.close()
        self.process.stderr.close()

    def log(self):
        return "".join(self.errors)

    def request(self, method, path, body=None, headers=None):
        """(status, parsed body or text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            payload = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
            connection.request(method, path, payload,
                               {"Content-Type": "application/json", **(headers or {})})
            response = connection.getresponse()
            text = response.read().decode()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text
        finally:
            connection.close()

    def chat(self, text, max_tokens=24, **more):
        """(answer, usage) of a greedy completion."""
        status, body = self.request("POST", "/v1/chat/completions", {
            "model": "test", "temperature": 0, "max_tokens": max_tokens,
            "messages": [{"role": "user", "content": text}], **more})
        if status != 200:
            raise RuntimeError(f"{status}: {body}")
        return body["choices"][0]["message"]["content"], body["usage"]

    def metric(self, name):
        _, text = self.request("GET", "/metrics")
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+-]+)$", text, re.MULTILINE)
        return sum(float(value) for value in values)


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def targets(data):
    return sorted(pathlib.Path(data).glob("target-*"))
