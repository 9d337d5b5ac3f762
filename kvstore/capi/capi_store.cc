// Connections, regions, namespaces and queues of cairn.h.
#include <memory>
#include <string>

#include "kvstore/capi/handles.h"
#include "kvstore/client/client.h"

namespace cairn::kv {
namespace {

std::string TextOf(const char* text) { return text == nullptr ? std::string() : text; }

cairn_code Refuse(Code code, std::string_view why, char* message, size_t message_size) {
  CopyMessage(why, message, message_size);
  return CodeOf(Status(code));
}

NamespaceOptions OptionsOf(const cairn_namespace_options& given) {
  NamespaceOptions options;
  options.name = TextOf(given.name);
  if (given.fingerprint != nullptr) {
    options.fingerprint.assign(static_cast<const char*>(given.fingerprint), given.fingerprint_size);
  }
  // What does not fit a byte is as wrong as 255 of them, and is refused as that.
  const auto byte = [](uint32_t value) { return static_cast<uint8_t>(std::min(value, 255u)); };
  if (given.data_shards != 0) options.data_shards = byte(given.data_shards);
  if (given.parity_shards == CAIRN_NO_PARITY) {
    options.parity_shards = 0;
  } else if (given.parity_shards != 0) {
    options.parity_shards = byte(given.parity_shards);
  }
  if (given.run_blocks != 0) options.run_blocks = given.run_blocks;
  if (given.ttl_seconds != 0) options.ttl_seconds = given.ttl_seconds;
  if (given.fixed_ttl != 0) options.retention = RetentionKind::kFixed;
  if (given.memory_only != 0) options.medium = Medium::kMemory;
  options.quota_bytes = given.quota_bytes;
  options.token = TextOf(given.token);
  options.create = given.attach_only == 0;
  return options;
}

}  // namespace

// C names are the same in every namespace; their visibility must be said again here.
#pragma GCC visibility push(default)
extern "C" {

uint32_t cairn_abi_version(void) { return CAIRN_ABI_VERSION; }

const char* cairn_code_name(cairn_code code) {
  const bool known = code >= CAIRN_OK && code <= CAIRN_CONFLICT;
  return known ? CodeName(static_cast<Code>(code)).data() : "unknown";
}

cairn_id cairn_block_id(const void* key, size_t size) {
  if (key == nullptr || size == 0 || size > kKeySizeMax) return cairn_id{};
  return ToC(BlockIdOf(ByteSpan(static_cast<const uint8_t*>(key), size)));
}

cairn_code cairn_connect(const cairn_connect_options* given, cairn_store** store, char* message,
                         size_t message_size) {
  if (store == nullptr) return CAIRN_INVALID;
  *store = nullptr;
  cairn_connect_options known;
  if (!CopyKnown(given, known) || known.address == nullptr) {
    return Refuse(Code::kInvalid, "options with a struct_size and an address are needed", message,
                  message_size);
  }
  RemoteOptions options;
  options.address = known.address;
  if (known.data_lanes != 0) options.data_lanes = known.data_lanes;
  if (known.call_timeout_ms != 0) options.call_timeout = Millis(known.call_timeout_ms);
  options.name = TextOf(known.name);
  auto made = std::make_unique<cairn_store>();
  made->call_timeout_ms = static_cast<uint32_t>(options.call_timeout.value / 1'000'000);
  auto client = RemoteClient::Connect(options, PollerOptions(), made->log);
  if (!client.ok()) {
    return Refuse(client.code(), client.status().message(), message, message_size);
  }
  made->client = std::move(client).value();
  *store = made.release();
  CopyMessage("", message, message_size);
  return CAIRN_OK;
}

void cairn_close(cairn_store* store) { delete store; }

void* cairn_region_new(cairn_store* store, size_t size) {
  if (store == nullptr || size == 0) return nullptr;
  const auto region = store->client->NewRegion(size);
  return region.ok() ? region.value().data() : nullptr;
}

cairn_code cairn_region_free(cairn_store* store, void* region, size_t size) {
  if (store == nullptr || region == nullptr) return CAIRN_INVALID;
  const size_t whole = AlignUp(size, kSectorSize);
  return CodeOf(store->client->FreeRegion({static_cast<uint8_t*>(region), whole}));
}

cairn_code cairn_attach(cairn_store* store, const cairn_namespace_options* given, cairn_id* space,
                        char* message, size_t message_size) {
  cairn_namespace_options known;
  if (store == nullptr || space == nullptr || !CopyKnown(given, known)) {
    return Refuse(Code::kInvalid, "a store, options with a struct_size and a place for the id are "
                                  "needed", message, message_size);
  }
  const auto attached = AttachAndWait(store->client->client(), OptionsOf(known));
  if (!attached.ok()) {
    return Refuse(attached.code(), attached.status().message(), message, message_size);
  }
  *space = ToC(attached.value());
  CopyMessage("", message, message_size);
  return CAIRN_OK;
}

cairn_queue* cairn_queue_new(void) {
  auto ready = EventFd::Create();
  return ready.ok() ? new cairn_queue(std::move(ready).value()) : nullptr;
}

void cairn_queue_free(cairn_queue* queue) { delete queue; }

int cairn_queue_fd(const cairn_queue* queue) { return queue == nullptr ? -1 : queue->fd(); }

size_t cairn_queue_take(cairn_queue* queue, cairn_completion* completions, size_t max,
                        int timeout_ms) {
  if (queue == nullptr || completions == nullptr) return 0;
  return queue->Take(completions, max, timeout_ms);
}

}  // extern "C"
#pragma GCC visibility pop

}  // namespace cairn::kv
