/* A whole program against cairn.h: puts three blocks of a chain, finds them, reads them back.
 *
 *     capi_example unix:/run/cairn/cairn.sock
 *
 * Exits with 0 when every byte came back; says what went wrong otherwise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvstore/capi/cairn.h"

enum { kBlocks = 3, kBlockSize = 256 * 1024 };

/* Waits for the one request in flight. */
static cairn_code finish(cairn_queue* queue, const char* what) {
  cairn_completion completion;
  if (cairn_queue_take(queue, &completion, 1, 60000) == 0) {
    fprintf(stderr, "%s: nothing came\n", what);
    return CAIRN_DEADLINE;
  }
  if (completion.code != CAIRN_OK) {
    fprintf(stderr, "%s: %s: %s\n", what, cairn_code_name(completion.code), completion.message);
  }
  return completion.code;
}

static int run(cairn_store* store, cairn_queue* queue) {
  char message[CAIRN_MESSAGE_MAX];
  cairn_namespace_options options;
  CAIRN_INIT(&options);
  options.name = "example";
  options.fingerprint = "bytes 1";
  options.fingerprint_size = strlen("bytes 1");
  cairn_id space;
  if (cairn_attach(store, &options, &space, message, sizeof(message)) != CAIRN_OK) {
    fprintf(stderr, "attach: %s\n", message);
    return 1;
  }

  /* The ids of a chain: each key names all tokens up to its block's end. */
  cairn_id ids[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    char key[32];
    snprintf(key, sizeof(key), "conversation 1, block %d", i);
    ids[i] = cairn_block_id(key, strlen(key));
  }
  const cairn_chain chain = {space, ids, kBlocks};

  /* Half of the region holds what is put, half takes what is got. */
  const size_t half = (size_t)kBlocks * kBlockSize;
  unsigned char* region = cairn_region_new(store, 2 * half);
  if (region == NULL) {
    fprintf(stderr, "no shared memory\n");
    return 1;
  }
  for (size_t i = 0; i < half; ++i) region[i] = (unsigned char)(i * 31 + i / 4096);

  cairn_write writes[kBlocks];
  memset(writes, 0, sizeof(writes));
  for (int i = 0; i < kBlocks; ++i) {
    writes[i].bytes = region + (size_t)i * kBlockSize;
    writes[i].size = kBlockSize;
  }
  if (cairn_submit_put(store, &chain, 0, writes, kBlocks, NULL, queue, 1) != CAIRN_OK ||
      finish(queue, "put") != CAIRN_OK) {
    return 1;
  }

  cairn_lookup lookup;
  CAIRN_INIT(&lookup);
  lookup.chain = chain;
  lookup.lease_ms = 10000; /* Until then nothing of it is evicted. */
  if (cairn_submit_lookup(store, &lookup, queue, 2) != CAIRN_OK ||
      finish(queue, "lookup") != CAIRN_OK) {
    return 1;
  }
  printf("%u of %d blocks are restorable, in about %llu us\n", lookup.blocks, kBlocks,
         (unsigned long long)lookup.load_estimate_ns / 1000);
  if (lookup.blocks != kBlocks) return 1;

  cairn_read reads[kBlocks];
  memset(reads, 0, sizeof(reads));
  for (int i = 0; i < kBlocks; ++i) {
    reads[i].chain_index = (uint32_t)i;
    reads[i].into = region + half + (size_t)i * kBlockSize;
    reads[i].into_size = kBlockSize;
  }
  if (cairn_submit_get(store, &chain, reads, kBlocks, 10000, queue, 3) != CAIRN_OK ||
      finish(queue, "get") != CAIRN_OK) {
    return 1;
  }
  for (int i = 0; i < kBlocks; ++i) {
    if (reads[i].code != CAIRN_OK || reads[i].size != kBlockSize) {
      fprintf(stderr, "block %d: %s\n", i, cairn_code_name(reads[i].code));
      return 1;
    }
  }
  if (lookup.lease != 0 &&
      (cairn_submit_release(store, &lookup.lease, 1, queue, 4) != CAIRN_OK ||
       finish(queue, "release") != CAIRN_OK)) {
    return 1;
  }
  if (memcmp(region, region + half, half) != 0) {
    fprintf(stderr, "the bytes differ\n");
    return 1;
  }
  printf("%d blocks put and got\n", kBlocks);
  return cairn_region_free(store, region, 2 * half) == CAIRN_OK ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc != 2 || cairn_abi_version() != CAIRN_ABI_VERSION) {
    fprintf(stderr, "usage: %s unix:PATH | HOST:PORT\n", argv[0]);
    return 2;
  }
  char message[CAIRN_MESSAGE_MAX];
  cairn_connect_options options;
  CAIRN_INIT(&options);
  options.address = argv[1];
  options.name = "example";
  cairn_store* store = NULL;
  if (cairn_connect(&options, &store, message, sizeof(message)) != CAIRN_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  cairn_queue* queue = cairn_queue_new();
  const int outcome = queue == NULL ? 1 : run(store, queue);
  cairn_close(store);
  cairn_queue_free(queue);
  return outcome;
}
