// A text key is digested as clients do it; an id is taken as it is.
#include "tools/cairn/keys.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "kvstore/types/limits.h"

namespace cairn::tools {
namespace {

using kv::Code;
using kv::Result;
using kv::Status;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<std::vector<uint8_t>> ParseHex(std::string_view text) {
  std::vector<uint8_t> bytes;
  if (text.size() % 2 != 0) return Status(Code::kInvalid, "hex digits come in pairs");
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) {
      return Status(Code::kInvalid, std::string("'").append(text).append("' is not hex digits"));
    }
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return bytes;
}

}  // namespace

void AddKeyOptions(CLI::App& verb, KeyFlags& flags) {
  verb.add_option("KEY", flags.key, "the block's key, 1 to 512 bytes of text")
      ->required()
      ->type_name("");
  CLI::Option* hex = verb.add_flag("--hex", flags.hex, "KEY is given in hex digits");
  verb.add_flag("--id", flags.id, "KEY is a block id as 'cairn ls' prints it")->excludes(hex);
}

Result<kv::Id128> ParseId(std::string_view text) {
  if (text.size() != 32) {
    return Status(Code::kInvalid, std::string("'").append(text).append(
                                      "' is no block id: it has 32 hex digits"));
  }
  kv::Id128 id;
  for (size_t i = 0; i < 32; ++i) {
    const int digit = HexDigit(text[i]);
    if (digit < 0) {
      return Status(Code::kInvalid,
                    std::string("'").append(text).append("' is no block id: hex digits only"));
    }
    uint64_t& half = i < 16 ? id.high : id.low;
    half = half << 4 | static_cast<uint64_t>(digit);
  }
  return id;
}

Result<std::vector<kv::BlockId>> ParseKey(const KeyFlags& flags) {
  if (flags.id) {
    const size_t slash = flags.key.find('/');
    std::vector<kv::BlockId> chain;
    if (slash != std::string::npos) {
      KV_ASSIGN_OR_RETURN(const kv::Id128 run, ParseId(flags.key.substr(0, slash)));
      chain.push_back({run});
    }
    KV_ASSIGN_OR_RETURN(const kv::Id128 id,
                        ParseId(flags.key.substr(slash == std::string::npos ? 0 : slash + 1)));
    chain.push_back({id});
    return chain;
  }
  std::vector<uint8_t> bytes(flags.key.begin(), flags.key.end());
  if (flags.hex) {
    KV_ASSIGN_OR_RETURN(bytes, ParseHex(flags.key));
  }
  if (bytes.empty() || bytes.size() > kv::kKeySizeMax) {
    return Status(Code::kInvalid, "a key has 1 to " + std::to_string(kv::kKeySizeMax) +
                                      " bytes; this one has " + std::to_string(bytes.size()));
  }
  return std::vector<kv::BlockId>{kv::BlockIdOf(bytes)};
}

std::string BlockName(kv::BlockId id, kv::RunId run) {
  const bool leads = id.high == run.high && id.low == run.low;
  return leads ? id.ToHex() : run.ToHex() + "/" + id.ToHex();
}

}  // namespace cairn::tools
