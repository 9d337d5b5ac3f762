// Cluster maps as bytes (docs/formats/map.md): a head and parts, so a small change is few bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvstore/base/result.h"
#include "kvstore/control/cluster_map.h"

namespace cairn::kv {

// Of one part or of the head: far below the 1.5 MiB that etcd takes in one request.
inline constexpr uint64_t kMapPartSizeMax = 512 * kKiB;

// A part is named by its content: one that did not change between two epochs keeps its name.
struct MapPart {
  std::string name;  // 16 hex digits: the XXH3-64 of `bytes`.
  std::string bytes;
};

struct EncodedMap {
  std::string head;  // Epoch, shape, and the names of the parts in their order.
  std::vector<MapPart> parts;
};

EncodedMap EncodeMap(const ClusterMap& map);

struct MapHead {
  uint64_t epoch = 0;
  ClusterShape shape;
  std::vector<std::string> part_names;
};

// kCorrupt when anything is wrong with the bytes of the head.
Result<MapHead> DecodeMapHead(std::string_view bytes);

// `parts` are the bytes of head.part_names, in order. kCorrupt when one is not what its name says,
// or when they do not make a map.
Result<std::shared_ptr<const ClusterMap>> DecodeMap(const MapHead& head,
                                                    std::span<const std::string_view> parts);

// All of it in one piece: what nodes send to each other, and what one process keeps in its file.
std::string EncodeWholeMap(const ClusterMap& map);
Result<std::shared_ptr<const ClusterMap>> DecodeWholeMap(std::string_view bytes);

}  // namespace cairn::kv
