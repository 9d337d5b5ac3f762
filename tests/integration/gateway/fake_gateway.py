"""Starts and stops the fake_gateway program for a test."""
import subprocess


class FakeGateway:
    def __init__(self, program, token=None):
        command = [program] + ([token] if token else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=60) == 0
