"""A TCP proxy that does to what passes what a bad network does; `FaultProxy` starts one for a test.

    fault_proxy.py LISTEN TARGET     HOST:PORT each; port 0: any

It prints where it listens, obeys lines on standard input, answers each with "done", and ends with it:
    delay SECONDS        every byte comes so much later, in both directions; the rate stays
    loss RATE SECONDS    of what is read at once (up to 256 KiB), this part stalls its direction for so
                         long, as TCP does that sends again
    cut WAY              nothing passes forward (to the target), backward, or both ways; it arrives once
                         that is healed, as TCP keeps sending
    break RATE           of what is read at once, this part costs its connection
    close                ends all connections (by a reset), and those that come from now on
    heal                 none of these any more
"""
import asyncio
import contextlib
import random
import socket
import struct
import subprocess
import sys

CHUNK = 1 << 18
QUEUED_MAX = 64  # Chunks on their way in one direction: 16 MiB.


class Faults:
    def __init__(self):
        self.healed = asyncio.Condition()
        self.connections = set()
        self.rng = random.Random(1)
        self.clear()

    def clear(self):
        self.delay, self.loss, self.pause, self.breaks = 0.0, 0.0, 0.0, 0.0
        self.cut, self.closed = frozenset(), False

    async def obey(self, verb, *words):
        if verb == "delay":
            self.delay = float(words[0])
        elif verb == "loss":
            self.loss, self.pause = (float(word) for word in words)
        elif verb == "break":
            self.breaks = float(words[0])
        elif verb == "cut":
            self.cut = {"forward": frozenset({"forward"}), "backward": frozenset({"backward"}),
                        "both": frozenset({"forward", "backward"})}[words[0]]
        elif verb == "close":
            self.closed = True
            for connection in self.connections:
                connection.reset()
        elif verb == "heal":
            self.clear()
        else:
            raise ValueError(verb)
        async with self.healed:
            self.healed.notify_all()

    async def may_pass(self, way):
        async with self.healed:
            await self.healed.wait_for(lambda: way not in self.cut)


class Connection:
    def __init__(self, faults, writers):
        self.faults, self.writers = faults, writers

    def reset(self):
        for writer in self.writers:
            with contextlib.suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def pump(self, way, reader, writer):
        """Reads at once what comes, and passes it on when it is due."""
        queue = asyncio.Queue(QUEUED_MAX)
        passing = asyncio.create_task(self.pass_on(way, queue, writer))
        try:
            while data := await reader.read(CHUNK):
                await queue.put((asyncio.get_running_loop().time() + self.faults.delay, data))
            await queue.put((0, b""))
            await passing
        finally:
            passing.cancel()

    async def pass_on(self, way, queue, writer):
        faults = self.faults
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - asyncio.get_running_loop().time()))
            if faults.rng.random() < faults.loss:
                await asyncio.sleep(faults.pause)
            if faults.rng.random() < faults.breaks:
                self.reset()
            await faults.may_pass(way)
            if not data:
                writer.write_eof()
                return
            writer.write(data)
            await writer.drain()


async def serve(faults, target, reader, writer):
    if faults.closed:
        writer.transport.abort()
        return
    try:
        onward_reader, onward_writer = await asyncio.open_connection(*target)
    except OSError:
        writer.transport.abort()
        return
    connection = Connection(faults, (writer, onward_writer))
    faults.connections.add(connection)
    for one in connection.writers:
        one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        await asyncio.gather(connection.pump("forward", reader, onward_writer),
                             connection.pump("backward", onward_reader, writer))
    except (OSError, asyncio.CancelledError):
        pass
    finally:
        faults.connections.discard(connection)
        connection.reset()


async def run(listen, target):
    faults = Faults()
    server = await asyncio.start_server(lambda *streams: serve(faults, target, *streams), *listen)
    print("%s:%d" % server.sockets[0].getsockname(), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        try:
            await faults.obey(*line.decode().split())
            print("done", flush=True)
        except (KeyError, TypeError, ValueError, IndexError):
            print("not understood", flush=True)
    server.close()


class FaultProxy:
    """A proxy in a process of its own: use as a context manager. `prefix`: a command that it is run by."""

    def __init__(self, target, listen="127.0.0.1:0", prefix=()):
        self.process = subprocess.Popen([*prefix, sys.executable, __file__, listen, target], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            self.__exit__()
            raise RuntimeError(f"no proxy at {listen} (exit code {self.process.returncode})")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __call__(self, *words):
        """One of the lines above; returns once it holds."""
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError(f"the proxy refuses: {words}")


def parse(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    asyncio.run(run(parse(sys.argv[1]), parse(sys.argv[2])))
