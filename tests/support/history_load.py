"""Clients that put, get and delete at random, each a thread with a connection of its own, and write a history.

The content of a block is drawn at each put, so bytes of another put are told from the right ones.
"""
import hashlib
import pathlib
import random
import threading
import time

import cairn_lib
import history

DEADLINE = 5.0  # Seconds, of every call.
SIZES = (4_000, 40_000, 200_000, 700_000)
CHAIN_BLOCKS_MAX = 4


class Space:
    """A namespace as the clients attach to it. `puts` is drawn from for the options of each put."""

    def __init__(self, name, puts=({},), **options):
        self.name, self.puts = name, puts
        self.options = {"ttl_seconds": 3600, "fixed_ttl": 1, "fingerprint": b"history", "fingerprint_size": 7, **options}


class Load:
    """What all clients of a test share. Histories are written to files in `folder`."""

    def __init__(self, library, folder, spaces, deletes=0.04, pause=0.0):
        """`pause`: seconds of each client between two operations."""
        self.library, self.folder, self.spaces, self.deletes = library, pathlib.Path(folder), spaces, deletes
        self.pause = pause
        self.chains = []  # (space, keys) that were put, or begun to.
        self.ending = threading.Event()
        self.clients = []
        self.events = history.Recorder(self.folder / "events.history")

    def start(self, address, node):
        name = f"c{len(self.clients)}"
        recorder = history.Recorder(self.folder / f"{name}.history", name, node)
        self.clients.append(Client(self, address, recorder, len(self.clients)))
        self.clients[-1].start()

    def stop(self):
        self.ending.set()
        for client in self.clients:
            client.join(timeout=180)
            if client.is_alive() or client.problem:
                raise AssertionError(f"client {client.recorder.client}: {client.problem or 'hangs'}")

    def audit(self, address, node, most=1 << 30):
        """Reads everything that was ever put, or so many of these chains."""
        name = f"audit{time.monotonic()}"
        recorder = history.Recorder(self.folder / f"{name}.history", name, node)
        auditor = Client(self, address, recorder, 0)
        auditor.connect()
        chains = list(self.chains)
        for space, keys in random.sample(chains, min(most, len(chains))):
            auditor.get(space, keys)
        auditor.close()

    def done(self, op):
        return sum(client.done.get(op, 0) for client in self.clients)

    def wait_for(self, count, op="put"):
        """Until the clients have done so many more of these, well."""
        target = self.done(op) + count
        until = time.monotonic() + 120
        while self.done(op) < target:
            if time.monotonic() > until:
                raise AssertionError(f"no {count} operations `{op}` succeed within two minutes")
            time.sleep(0.01)

    def history(self):
        """As of now, also while clients go on."""
        now = time.time() - 0.5  # What began before is surely written.
        return history.History.load(sorted(self.folder.glob("*.history"))).until(now)


class Client(threading.Thread):
    def __init__(self, load, address, recorder, seed):
        super().__init__(daemon=True)
        self.load, self.address, self.recorder = load, address, recorder
        self.rng = random.Random(seed)
        self.numbers, self.done, self.problem = 0, {}, ""

    def run(self):
        try:
            self.connect()
            while not self.load.ending.is_set():
                self.step()
                self.load.ending.wait(self.load.pause)
            self.close()
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.problem = repr(error)

    def connect(self):
        self.store = cairn_lib.Store(self.load.library, self.address, self.recorder.client,
                                     call_timeout_ms=int(DEADLINE * 1000))
        self.ids = {space.name: self.store.attach(space.name, **space.options) for space in self.load.spaces}
        self.room = max(SIZES) + 4096 - max(SIZES) % 4096
        self.base, self.memory = self.store.region(CHAIN_BLOCKS_MAX * self.room)

    def close(self):
        self.store.close()
        self.recorder.close()

    def step(self):
        draw = self.rng.random()
        if draw < 0.3 or not self.load.chains:
            space = self.rng.choice(self.load.spaces)
            if self.load.chains and self.rng.random() < 0.1:  # Some that are there, or were.
                space, keys = self.rng.choice(self.load.chains)
            else:
                self.numbers += 1
                keys = [f"{self.recorder.client}-{self.numbers}-{index}"
                        for index in range(self.rng.randint(1, CHAIN_BLOCKS_MAX))]
                self.load.chains.append((space, keys))
            self.put(space, keys)
        elif draw < 1 - self.load.deletes:
            recent = self.load.chains[-40:] if self.rng.random() < 0.5 else self.load.chains
            self.get(*self.rng.choice(recent))
        else:
            self.delete(*self.rng.choice(self.load.chains))

    def places(self, sizes):
        return [(self.base + index * self.room, size) for index, size in enumerate(sizes)]

    def begin(self, op, space, keys, fields):
        return [self.recorder.begin(op, DEADLINE, space=space.name, key=key, **more)
                for key, more in zip(keys, fields)]

    def end(self, op, names, results):
        for name, (result, digest) in zip(names, results):
            self.recorder.end(name, result, **({"digest": digest} if digest else {}))
            if result in ("ok", "miss"):
                self.done[op] = self.done.get(op, 0) + 1
        if all(result not in ("ok", "miss") for result, _ in results):
            self.load.ending.wait(0.02)  # As a client that backs off.

    def put(self, space, keys):
        sizes = [self.rng.choice(SIZES) for _ in keys]
        options = dict(self.rng.choice(space.puts))
        if "keep_seconds" in options:
            options["keep_until_ms"] = int((time.time() + options.pop("keep_seconds")) * 1000)
        fields = []
        for index, size in enumerate(sizes):
            content = self.rng.randbytes(size)
            self.memory[index * self.room:index * self.room + size] = content
            fields.append({"digest": digest_of(content), "durable": bool(options.get("durable")),
                           "ttl": options.get("ttl_seconds", space.options["ttl_seconds"]),
                           "keep_until": options.get("keep_until_ms", 0) / 1000})
        names = self.begin("put", space, keys, fields)
        outcome = self.attempt(self.store.put, self.store.chain(self.ids[space.name], encoded(keys)), 0,
                               self.places(sizes), **options)
        self.end("put", names, [(outcome, "")] * len(keys))

    def get(self, space, keys):
        names = self.begin("get", space, keys, [{}] * len(keys))
        chain = self.store.chain(self.ids[space.name], encoded(keys))
        codes, said = self.store.read(chain, self.places([self.room] * len(keys)), int(DEADLINE * 1000))
        results = []
        for index, (code, size) in enumerate(codes):
            if code == cairn_lib.OK:
                start = index * self.room
                results.append(("ok", digest_of(self.memory[start:start + size])))
            else:
                results.append(("miss" if code == cairn_lib.NOT_FOUND else f"{code} {said}", ""))
        self.end("get", names, results)

    def delete(self, space, keys):
        names = self.begin("delete", space, keys, [{}] * len(keys))
        chain = self.store.chain(self.ids[space.name], encoded(keys))
        self.end("delete", names, [(self.attempt(self.store.delete, chain, 0), "")] * len(keys))

    @staticmethod
    def attempt(call, *arguments, **options):
        try:
            call(*arguments, **options)
            return "ok"
        except cairn_lib.Failed as failed:
            return str(failed)


def encoded(keys):
    return [key.encode() for key in keys]


def digest_of(content):
    return hashlib.sha1(content).hexdigest()[:16]


def percentile(sorted_values, percent):
    return sorted_values[min(len(sorted_values) - 1, len(sorted_values) * percent // 100)] if sorted_values else 0.0
