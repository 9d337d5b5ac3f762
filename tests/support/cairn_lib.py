"""libcairn.so by ctypes: enough of kvstore/capi/cairn.h to put, look up and get chains from Python."""
import ctypes
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p, sizeof

OK, NOT_FOUND, UNAVAILABLE = 0, 1, 2


class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint8 * 16)]


class Segment(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class Chain(ctypes.Structure):
    _fields_ = [("space", Id), ("ids", POINTER(Id)), ("count", c_size_t)]


class ConnectOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("address", c_char_p), ("data_lanes", c_uint32),
                ("call_timeout_ms", c_uint32), ("name", c_char_p)]


class NamespaceOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("fingerprint", c_char_p),
                ("fingerprint_size", c_size_t), ("data_shards", c_uint32), ("parity_shards", c_uint32),
                ("run_blocks", c_uint32), ("ttl_seconds", c_uint32), ("fixed_ttl", c_uint32),
                ("memory_only", c_uint32), ("quota_bytes", c_uint64), ("token", c_char_p),
                ("attach_only", c_uint32)]


class PutOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("durable", c_uint32), ("ttl_seconds", c_uint32),
                ("keep_until_ms", c_uint64)]


class Completion(ctypes.Structure):
    _fields_ = [("tag", c_uint64), ("code", c_int), ("message", c_char * 192)]


class LookupRequest(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("chain", Chain), ("lease_ms", c_uint32), ("blocks", c_uint32),
                ("miss", c_uint32), ("load_estimate_ns", c_uint64), ("lease", c_uint64),
                ("lease_granted_ms", c_uint32), ("sizes", POINTER(c_uint32))]


class Read(ctypes.Structure):
    _fields_ = [("chain_index", c_uint32), ("into", c_void_p), ("into_size", c_size_t),
                ("segments", POINTER(Segment)), ("segment_count", c_size_t), ("code", c_int),
                ("size", c_uint32), ("checksum", c_uint64)]


class Write(ctypes.Structure):
    _fields_ = [("bytes", c_void_p), ("size", c_size_t), ("segments", POINTER(Segment)),
                ("segment_count", c_size_t), ("code", c_int)]


class Failed(RuntimeError):
    def __init__(self, what, code, message):
        super().__init__(f"{what}: {code}: {message}")
        self.code = code


class Store:
    """One connection; one request at a time."""

    def __init__(self, library, address, name="python", call_timeout_ms=0):
        self.lib = ctypes.CDLL(str(library))
        for function, kind in (("cairn_region_new", c_void_p), ("cairn_queue_new", c_void_p),
                               ("cairn_block_id", Id), ("cairn_queue_take", c_size_t)):
            getattr(self.lib, function).restype = kind
        message = ctypes.create_string_buffer(192)
        options = ConnectOptions(sizeof(ConnectOptions), address.encode(), 0, call_timeout_ms, name.encode())
        self.handle = c_void_p()
        code = self.lib.cairn_connect(byref(options), byref(self.handle), message, c_size_t(192))
        if code != OK:
            raise Failed("connect", code, message.value.decode())
        self.queue = c_void_p(self.lib.cairn_queue_new())
        self.spaces = {}

    def close(self):
        self.lib.cairn_close(self.handle)
        self.lib.cairn_queue_free(self.queue)

    def attach(self, name, **fields):
        options = NamespaceOptions(struct_size=sizeof(NamespaceOptions), name=name.encode(), **fields)
        space, message = Id(), ctypes.create_string_buffer(192)
        code = self.lib.cairn_attach(self.handle, byref(options), byref(space), message, c_size_t(192))
        if code != OK:
            raise Failed("attach", code, message.value.decode())
        return space

    def region(self, size):
        """Memory shared with the server: (address, a memoryview of it)."""
        address = self.lib.cairn_region_new(self.handle, c_size_t(size))
        if not address:
            raise Failed("region", 2, "no memory")
        return address, memoryview((ctypes.c_uint8 * size).from_address(address)).cast("B")

    def chain(self, space, keys):
        ids = (Id * len(keys))(*[self.lib.cairn_block_id(key, c_size_t(len(key))) for key in keys])
        return Chain(space, ids, len(keys))

    def wait(self, what, submitted):
        if submitted != OK:
            raise Failed(what, submitted, "the request is malformed")
        done = Completion()
        if not self.lib.cairn_queue_take(self.queue, byref(done), c_size_t(1), c_int(120_000)):
            raise Failed(what, 5, "no completion")
        if done.code != OK:
            raise Failed(what, done.code, done.message.decode())

    def put(self, chain, first, blocks, **options):
        """`blocks`: (address, size) each; `options`: fields of PutOptions."""
        writes = (Write * len(blocks))(*[Write(bytes=address, size=size) for address, size in blocks])
        options = PutOptions(struct_size=sizeof(PutOptions), **options)
        self.wait("put", self.lib.cairn_submit_put(self.handle, byref(chain), c_uint32(first), writes,
                                                   c_size_t(len(blocks)), byref(options), self.queue, c_uint64(1)))

    def delete(self, chain, first):
        self.wait("delete", self.lib.cairn_submit_delete(self.handle, byref(chain), c_uint32(first), self.queue,
                                                         c_uint64(4)))

    def lookup(self, chain, lease_ms=0):
        request = LookupRequest(struct_size=sizeof(LookupRequest), chain=chain, lease_ms=lease_ms)
        self.wait("lookup", self.lib.cairn_submit_lookup(self.handle, byref(request), self.queue, c_uint64(2)))
        return request

    def get(self, chain, reads, deadline_ms=60_000):
        """`reads`: (index in the chain, address, size) each. Their codes, and sizes where they are ok."""
        return self.get_all([(chain, reads)], deadline_ms)[0]

    def read(self, chain, places, deadline_ms):
        """`places`: (address, size) for each block of the chain. ([(code, size)], what went wrong)."""
        blocks = (Read * len(places))(*[Read(chain_index=index, into=address, into_size=size, code=UNAVAILABLE)
                                        for index, (address, size) in enumerate(places)])
        said = ""
        try:
            self.wait("get", self.lib.cairn_submit_get(self.handle, byref(chain), blocks, c_size_t(len(blocks)),
                                                       c_uint32(deadline_ms), self.queue, c_uint64(5)))
        except Failed as failed:
            said = str(failed)
        return [(block.code, block.size) for block in blocks], said

    def get_all(self, requests, deadline_ms=60_000):
        """Several gets at once: (chain, reads) each."""
        submitted = []
        for chain, reads in requests:
            blocks = (Read * len(reads))(*[Read(chain_index=index, into=address, into_size=size)
                                           for index, address, size in reads])
            code = self.lib.cairn_submit_get(self.handle, byref(chain), blocks, c_size_t(len(reads)),
                                             c_uint32(deadline_ms), self.queue, c_uint64(3))
            submitted.append((blocks, code))
        for _blocks, code in submitted:
            self.wait("get", code)
        return [[(block.code, block.size) for block in blocks] for blocks, _code in submitted]
