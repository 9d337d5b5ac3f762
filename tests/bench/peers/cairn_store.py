"""Cairn as one of the contenders of peers.py: a cairnd of its own, reached by libcairn.so."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import cairn_lib  # noqa: E402  pylint: disable=wrong-import-position
from rivals import Server, wait_until  # noqa: E402  pylint: disable=wrong-import-position

CONFIG = """
[store]
data_dir = "{data}"
target_size = "{target} B"
self_test = false
[listen]
unix_socket = "{socket}"
metrics = ""
"""


class Cairn:
    name = "cairn"

    def __init__(self, folder, build, capacity, medium):
        self.memory_only = medium == "memory"
        self.medium = "memory, shared with the client" if self.memory_only else "SSD (O_DIRECT), shared memory"
        self.redundancy = "one copy, checksums" if self.memory_only else "10+2, checksums"
        folder = pathlib.Path(folder)
        path = folder / "cairn.sock"
        target = max(256 << 20, capacity * 3 // 2 // 10)
        config = folder / "cairnd.toml"
        config.write_text(CONFIG.format(data=folder / "data", socket=path, target=target),
                          encoding="utf-8")
        self.server = Server([build / "kvstore/daemon/cairnd", "--config", config], folder / "cairnd.log")
        wait_until(path.exists, "cairnd", 60)
        self.store = cairn_lib.Store(build / "kvstore/capi/libcairn.so", f"unix:{path}")
        self.space = self.store.attach("peers", memory_only=self.memory_only)

    def prepare(self, batch, size):
        self.size = size
        self.address, self.view = self.store.region(batch * size)
        self.chains = {}

    def put(self, keys, values):
        for i, value in enumerate(values):
            self.view[i * self.size:(i + 1) * self.size] = value
        chain = self.store.chain(self.space, [key.encode() for key in keys])
        self.store.put(chain, 0, [(self.address + i * self.size, self.size) for i in range(len(keys))])
        for i, key in enumerate(keys):
            self.chains[key] = (chain, i)

    def get(self, keys):
        """Values of several chains: one request for each chain."""
        slots = {}
        for slot, key in enumerate(keys):
            chain, index = self.chains[key]
            slots.setdefault(id(chain), (chain, []))[1].append((index, slot))
        values = [None] * len(keys)
        requests = [(chain, [(index, self.address + slot * self.size, self.size) for index, slot in parts])
                    for chain, parts in slots.values()]
        for results, (_, parts) in zip(self.store.get_all(requests), slots.values()):
            for (code, size), (_, slot) in zip(results, parts):
                if code == cairn_lib.OK and size == self.size:
                    values[slot] = self.view[slot * self.size:(slot + 1) * self.size]
        return values

    def stop(self):
        self.store.close()
        self.server.stop()
