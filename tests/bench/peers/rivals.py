"""Key-value stores that are to be had as packages, behind one small face: put and get of many values.

Each starts its own server processes on loopback and ends them. `redundancy` and `medium` say what
the figures mean: a store that keeps one copy in memory does less than one that keeps 10+2 on an SSD.
"""
import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import time


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(ready, what, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if ready():
            return
        time.sleep(0.05)
    raise RuntimeError(f"{what} does not answer within {seconds} s")


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A child process whose output goes to a file; ended by its process id."""

    def __init__(self, command, log, env=None):
        self.log = open(log, "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, env=env)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Redis:
    name, redundancy = "redis", "one copy, no checksum"

    def __init__(self, folder, transport):
        import redis  # pylint: disable=import-outside-toplevel
        self.medium = f"memory, {transport}"
        self.name = f"redis.{transport}"
        port, path = free_port(), str(pathlib.Path(folder) / "redis.sock")
        self.server = Server(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--unixsocket",
                              path, "--save", "", "--appendonly", "no"],
                             pathlib.Path(folder) / "redis.log")
        wait_until(lambda: is_listening(port), "redis-server")
        where = {"unix_socket_path": path} if transport == "unix" else {"host": "127.0.0.1", "port": port}
        self.client = redis.Redis(**where)

    def put(self, keys, values):
        with self.client.pipeline(transaction=False) as pipe:
            for key, value in zip(keys, values):
                pipe.set(key, value)
            pipe.execute()

    def get(self, keys):
        return self.client.mget(keys)

    def stop(self):
        self.client.close()
        self.server.stop()


MOONCAKE_OWNER = """
import sys, time
from mooncake.store import MooncakeDistributedStore
store = MooncakeDistributedStore()
assert store.setup("127.0.0.1:" + sys.argv[1], sys.argv[2], int(sys.argv[4]), 64 << 20, "tcp", "", sys.argv[3]) == 0
print("ready", flush=True)
time.sleep(3600)
"""


class Mooncake:
    """A master, a process that owns the memory, and this process, which owns none: values cross TCP."""
    name, redundancy, medium = "mooncake.tcp", "one copy, no checksum", "memory, tcp"

    def __init__(self, folder, capacity):
        from mooncake.store import MooncakeDistributedStore  # pylint: disable=import-outside-toplevel
        folder = pathlib.Path(folder)
        rpc, http, metrics = free_port(), free_port(), free_port()
        bin_folder = pathlib.Path(sys.executable).parent
        self.servers = [Server([bin_folder / "mooncake_master", f"-rpc_port={rpc}", "-rpc_address=127.0.0.1",
                                "-enable_http_metadata_server=true", f"-http_metadata_server_port={http}",
                                "-http_metadata_server_host=127.0.0.1", f"-metrics_port={metrics}"],
                               folder / "master.log")]
        wait_until(lambda: is_listening(rpc) and is_listening(http), "mooncake_master")
        metadata, master = f"http://127.0.0.1:{http}/metadata", f"127.0.0.1:{rpc}"
        owner = folder / "owner.log"
        self.servers.append(Server([sys.executable, "-c", MOONCAKE_OWNER, str(free_port()), metadata,
                                    master, str(capacity)], owner))
        wait_until(lambda: b"ready" in owner.read_bytes(), "the owner of Mooncake's memory")
        self.store = MooncakeDistributedStore()
        failure = self.store.setup(f"127.0.0.1:{free_port()}", metadata, 0, 64 << 20, "tcp", "", master)
        if failure:
            raise RuntimeError(f"Mooncake's client does not start: {failure}")
        self.buffer = None

    def prepare(self, batch, size):
        self.size = size
        self.buffer = ctypes.create_string_buffer(batch * size)
        self.address = ctypes.addressof(self.buffer)
        if self.store.register_buffer(self.address, batch * size):
            raise RuntimeError("Mooncake does not take the buffer")

    def put(self, keys, values):
        addresses = []
        for i, value in enumerate(values):
            addresses.append(self.address + i * self.size)
            ctypes.memmove(addresses[-1], value, self.size)
        results = self.store.batch_put_from(keys, addresses, [self.size] * len(keys))
        if any(results):
            raise RuntimeError(f"Mooncake refuses a put: {results}")

    def get(self, keys):
        addresses = [self.address + i * self.size for i in range(len(keys))]
        results = self.store.batch_get_into(keys, addresses, [self.size] * len(keys))
        view = memoryview(self.buffer).cast("B")
        return [view[i * self.size:(i + 1) * self.size] if result == self.size else None
                for i, result in enumerate(results)]

    def release(self):
        self.store.unregister_buffer(self.address)
        self.buffer = None

    def stop(self):
        self.store.close()
        for server in reversed(self.servers):
            server.stop()


class LmCache:
    """LMCache's local-disk backend, in this process: a file per block, written and read with O_DIRECT."""
    name, redundancy, medium = "lmcache.disk", "one copy, no checksum", "SSD (O_DIRECT files)"

    def __init__(self, folder, capacity):
        # pylint: disable=import-outside-toplevel
        import asyncio
        import threading
        import torch
        from lmcache.utils import CacheEngineKey
        from lmcache.v1.config import LMCacheEngineConfig
        from lmcache.v1.memory_allocators.mixed_memory_allocator import MixedMemoryAllocator
        from lmcache.v1.memory_management import MemoryFormat
        from lmcache.v1.storage_backend.local_cpu_backend import LocalCPUBackend
        from lmcache.v1.storage_backend.local_disk_backend import LocalDiskBackend
        self.torch, self.key_type, self.format = torch, CacheEngineKey, MemoryFormat.KV_2LTD
        config = LMCacheEngineConfig.from_defaults(
            local_cpu=False, local_disk=f"file://{folder}/lmcache/", max_local_disk_size=capacity / 2**30,
            extra_config={"use_odirect": True})
        self.semaphore = threading.Semaphore
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.allocator = MixedMemoryAllocator(256 << 20)
        self.memory = LocalCPUBackend(config, memory_allocator=self.allocator, dst_device="cpu")
        self.disk = LocalDiskBackend(config, self.loop, self.memory, dst_device="cpu")

    def prepare(self, _batch, size):
        self.size = size

    def _key(self, key):
        return self.key_type("bench", 1, 0, int(key), self.torch.uint8)

    def put(self, keys, values):
        objects = []
        for value in values:
            memory = self.memory.allocate(self.torch.Size([2, 1, self.size // 2, 1]), self.torch.uint8,
                                          self.format)
            memory.byte_array.cast("B")[:] = value
            objects.append(memory)
        written = self.semaphore(0)
        self.disk.batched_submit_put_task([self._key(key) for key in keys], objects,
                                          on_complete_callback=lambda _key: written.release())
        for _ in keys:
            if not written.acquire(timeout=20):  # pylint: disable=consider-using-with
                raise RuntimeError("LMCache's disk backend does not write")
        for memory in objects:
            memory.ref_count_down()

    def get(self, keys):
        self.taken = self.disk.batched_get_blocking([self._key(key) for key in keys])
        return [None if memory is None else memory.byte_array.cast("B") for memory in self.taken]

    def release_batch(self):
        for memory in self.taken:
            memory.ref_count_down()

    def stop(self):
        self.disk.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
