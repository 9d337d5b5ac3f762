// Cairn's block store for programs in C, and for languages that call C: libcairn.so.
//
// A store is a connection to a running cairnd. Work is submitted with a tag and a queue; its
// completion, with that tag, is taken from the queue later, in any order. All calls are
// thread-safe, except that nothing else may use a store or a queue while it is being closed.
//
// Memory named in a request (ids, segments, the request's own arrays) is the caller's and must
// stay as it is until the completion has been taken; answers are written into the request's arrays
// before that. Strings and option structures are copied at once.
//
// Structures begin with their size, so that a later version of the library can tell what the caller
// knows: set it by CAIRN_INIT(&options), which also zeroes the rest; zero means the default.
//
// The ABI: within one CAIRN_ABI_VERSION functions and fields are only added, at the end.
#ifndef CAIRN_H_
#define CAIRN_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_ABI_VERSION 1
#define CAIRN_API __attribute__((visibility("default")))

/* The library's own version: refuse to go on when it is not CAIRN_ABI_VERSION. */
CAIRN_API uint32_t cairn_abi_version(void);

/* What the caller should do next. */
typedef int32_t cairn_code;
enum {
  CAIRN_OK = 0,
  CAIRN_NOT_FOUND = 1,   /* Compute the block instead: an ordinary miss. */
  CAIRN_UNAVAILABLE = 2, /* Not connected, or too much of it is lost: try again later. */
  CAIRN_CORRUPT = 3,     /* Treat as missing. */
  CAIRN_OVERLOADED = 4,  /* Back off. */
  CAIRN_DEADLINE = 5,    /* The deadline passed. */
  CAIRN_INVALID = 6,     /* Fix the request. */
  CAIRN_NO_SPACE = 7,
  CAIRN_CONFLICT = 8     /* Of another version, or somebody else holds it. */
};

/* "not found", ...; never null. */
CAIRN_API const char* cairn_code_name(cairn_code code);

typedef struct cairn_id {
  uint8_t bytes[16];
} cairn_id;

/* The block id of a key of 1 to 512 bytes: the first 128 bits of its SHA-256. All zero when the key
 * has another length. */
CAIRN_API cairn_id cairn_block_id(const void* key, size_t size);

#define CAIRN_MESSAGE_MAX 192

#define CAIRN_INIT(structure)                        \
  do {                                               \
    memset((structure), 0, sizeof(*(structure)));    \
    (structure)->struct_size = sizeof(*(structure)); \
  } while (0)

/* --- Connection --------------------------------------------------------------------------- */

typedef struct cairn_store cairn_store;

typedef struct cairn_connect_options {
  size_t struct_size;
  const char* address;      /* "unix:/run/cairn/cairn.sock" or "127.0.0.1:7400". */
  uint32_t data_lanes;      /* Connections for bulk data, 1..16. Default 2. */
  uint32_t call_timeout_ms; /* Of every call but a get, which has its own. Default 30,000. */
  const char* name;         /* For the server's log. */
} cairn_connect_options;

/* Connects and waits for it. On failure *store is null and `message` (may be null) says why in at
 * most `message_size` bytes. A connection that breaks later is made again by itself. */
CAIRN_API cairn_code cairn_connect(const cairn_connect_options* options, cairn_store** store,
                                   char* message, size_t message_size);

/* Fails what is in flight (its completions are still to be had from their queues) and disconnects.
 * Regions are gone. Queues are freed by cairn_queue_free, before or after. Null is fine. */
CAIRN_API void cairn_close(cairn_store* store);

/* Memory that the server may read and write itself (over a unix socket; otherwise it is ordinary
 * memory): blocks got into whole, aligned sectors of 4,096 bytes of it land without a copy. Null
 * when there is none. It lives until cairn_region_free or cairn_close. */
CAIRN_API void* cairn_region_new(cairn_store* store, size_t size);
/* No request may be in flight that names it. `size` as it was asked for. */
CAIRN_API cairn_code cairn_region_free(cairn_store* store, void* region, size_t size);

/* --- Namespaces ---------------------------------------------------------------------------- */

typedef struct cairn_namespace_options {
  size_t struct_size;
  const char* name;            /* 1 to 128 bytes. */
  const void* fingerprint;     /* Of the layout: everything on which the bytes' meaning depends. */
  size_t fingerprint_size;     /* Up to 4 KiB. */
  uint32_t data_shards;        /* Default 10. */
  uint32_t parity_shards;      /* Default 2; CAIRN_NO_PARITY: none. */
  uint32_t run_blocks;         /* Default 64; 1 for independent keys. */
  uint32_t ttl_seconds;        /* Default 3 days. */
  uint32_t fixed_ttl;          /* 1: hits do not refresh. */
  uint32_t memory_only;        /* 1: in the server's memory alone. */
  uint64_t quota_bytes;        /* 0: none. */
  const char* token;           /* Null: none. */
  uint32_t attach_only;        /* 1: CAIRN_NOT_FOUND when it does not exist; else it is created. */
} cairn_namespace_options;
#define CAIRN_NO_PARITY 0xffffffffu

/* Creates or attaches, and waits for it. */
CAIRN_API cairn_code cairn_attach(cairn_store* store, const cairn_namespace_options* options,
                                  cairn_id* space, char* message, size_t message_size);

/* --- Completions --------------------------------------------------------------------------- */

typedef struct cairn_queue cairn_queue;

typedef struct cairn_completion {
  uint64_t tag;
  cairn_code code;                 /* Of the request as a whole; blocks have their own. */
  char message[CAIRN_MESSAGE_MAX]; /* For people; empty when all is well. */
} cairn_completion;

/* Null when the process has too many descriptors. */
CAIRN_API cairn_queue* cairn_queue_new(void);
/* Every completion must have been taken: submitted requests hold the queue. */
CAIRN_API void cairn_queue_free(cairn_queue* queue);
/* Readable when completions wait: for poll, epoll, asyncio. Do not read, write or close it. */
CAIRN_API int cairn_queue_fd(const cairn_queue* queue);
/* Takes up to `max` completions; waits for the first for `timeout_ms` (0: not at all, negative:
 * until there is one). Returns how many. */
CAIRN_API size_t cairn_queue_take(cairn_queue* queue, cairn_completion* completions, size_t max,
                                  int timeout_ms);

/* --- Requests. Each returns CAIRN_OK when a completion will come, and CAIRN_INVALID when none
 *     will: a null pointer, or a structure that is too small. ------------------------------- */

typedef struct cairn_segment {
  void* data;
  size_t size;
} cairn_segment;

/* A chain: the ids of one sequence's blocks, in order. */
typedef struct cairn_chain {
  cairn_id space;
  const cairn_id* ids;
  size_t count;
} cairn_chain;

typedef struct cairn_lookup {
  size_t struct_size;
  cairn_chain chain;
  uint32_t lease_ms;         /* 0: no lease. */
  /* The answer. */
  uint32_t blocks;           /* Restorable, counted from the chain's first. */
  uint32_t miss;             /* Why the next is not: 0 all are there, 1 absent, 2 expired,
                                3 evicted, 4 unavailable. */
  uint64_t load_estimate_ns; /* To read all of them. */
  uint64_t lease;            /* 0: none. */
  uint32_t lease_granted_ms;
  uint32_t* sizes;           /* Null, or chain.count places: the bytes of each restorable block. */
} cairn_lookup;
CAIRN_API cairn_code cairn_submit_lookup(cairn_store* store, cairn_lookup* lookup,
                                         cairn_queue* queue, uint64_t tag);

/* Each block from `first` on for itself: independent keys (run_blocks 1), windows, holes. */
typedef struct cairn_lookup_each {
  size_t struct_size;
  cairn_chain chain;
  uint32_t first;
  uint32_t lease_ms;
  /* The answer. */
  uint32_t* sizes;           /* chain.count - first places; 0: not restorable. */
  uint64_t load_estimate_ns;
  uint64_t lease;
  uint32_t lease_granted_ms;
} cairn_lookup_each;
CAIRN_API cairn_code cairn_submit_lookup_each(cairn_store* store, cairn_lookup_each* lookup,
                                              cairn_queue* queue, uint64_t tag);

/* One block of a get. With segment_count > 0 it lands in the segments, one after another (at most
 * 2,048); else in `into`. */
typedef struct cairn_read {
  uint32_t chain_index;  /* Which block of the chain. */
  void* into;
  size_t into_size;
  const cairn_segment* segments;
  size_t segment_count;
  /* The answer. */
  cairn_code code;       /* When it is not CAIRN_OK the memory's content means nothing. */
  uint32_t size;
  uint64_t checksum;     /* XXH3-64 of the block. */
} cairn_read;
/* deadline_ms: from now; 0: the call timeout. */
CAIRN_API cairn_code cairn_submit_get(cairn_store* store, const cairn_chain* chain,
                                      cairn_read* reads, size_t count, uint32_t deadline_ms,
                                      cairn_queue* queue, uint64_t tag);

typedef struct cairn_write {
  const void* bytes;
  size_t size;                  /* 1 byte to 64 MiB. */
  const cairn_segment* segments;
  size_t segment_count;
  /* The answer. */
  cairn_code code;
} cairn_write;

typedef struct cairn_put_options {
  size_t struct_size;
  uint32_t durable;         /* 1: done means that it survives a power cut. */
  uint32_t ttl_seconds;     /* 0: the namespace's. */
  uint64_t keep_until_ms;   /* Since 1970; 0: no such promise. */
} cairn_put_options;
/* Stores writes[i] as block first + i of the chain, which reaches at least that far. `options` may
 * be null. */
CAIRN_API cairn_code cairn_submit_put(cairn_store* store, const cairn_chain* chain, uint32_t first,
                                      cairn_write* writes, size_t count,
                                      const cairn_put_options* options, cairn_queue* queue,
                                      uint64_t tag);

/* Refreshes blocks [first, end) as a hit does, and raises their keep_until. `codes`: null, or
 * chain.count - first places. */
CAIRN_API cairn_code cairn_submit_touch(cairn_store* store, const cairn_chain* chain,
                                        uint32_t first, uint64_t keep_until_ms, cairn_code* codes,
                                        cairn_queue* queue, uint64_t tag);

CAIRN_API cairn_code cairn_submit_delete(cairn_store* store, const cairn_chain* chain,
                                         uint32_t first, cairn_queue* queue, uint64_t tag);

/* Leases: `codes` is null or has `count` places; CAIRN_NOT_FOUND: it had ended. A renewed one lasts
   as long, at most, as lookups grant there: in a cluster for 60 s. */
CAIRN_API cairn_code cairn_submit_renew(cairn_store* store, const uint64_t* leases, size_t count,
                                        uint32_t lease_ms, cairn_code* codes, cairn_queue* queue,
                                        uint64_t tag);
CAIRN_API cairn_code cairn_submit_release(cairn_store* store, const uint64_t* leases, size_t count,
                                          cairn_queue* queue, uint64_t tag);

#ifdef __cplusplus
}
#endif

#endif /* CAIRN_H_ */
