// `cairn put, get, delete`: one block at a time, from and to files.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kvstore/config/quantity.h"
#include "tools/cairn/format.h"
#include "tools/cairn/keys.h"
#include "tools/cairn/session.h"
#include "tools/cairn/store_verbs.h"

namespace cairn::tools {
namespace {

using kv::BlockId;
using kv::Code;
using kv::RemoteStore;
using kv::Result;
using kv::Status;

struct BlockFlags {
  std::string space;
  KeyFlags key;
  std::string token_file;
  std::string file = "-";
  std::string ttl;
  std::string keep_until;
  bool durable = false;
};

void AddBlockOptions(CLI::App& verb, BlockFlags& flags) {
  verb.add_option("NAMESPACE", flags.space, "name of the namespace")->required()->type_name("");
  AddKeyOptions(verb, flags.key);
  verb.add_option("--token-file", flags.token_file, "the file with the namespace's token")
      ->type_name("FILE");
}

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Status FileError(const std::string& path, const char* what) {
  return Status(Code::kInvalid,
                path + ": cannot " + what + ": " + std::string(std::strerror(errno)));
}

Result<std::vector<uint8_t>> ReadInput(const std::string& path) {
  const File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(path, "open it");
  std::vector<uint8_t> bytes;
  constexpr size_t kChunk = 1 << 20;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + kChunk);
    const size_t got = std::fread(bytes.data() + before, 1, kChunk, file.get());
    bytes.resize(before + got);
    if (bytes.size() > kv::kBlockSizeMax) {
      return Status(Code::kInvalid, path + ": is larger than a block can be (" +
                                        kv::FormatBytes(kv::kBlockSizeMax) + "); split it");
    }
    if (got < kChunk) break;
  }
  if (std::ferror(file.get()) != 0) return FileError(path, "read it");
  if (bytes.empty()) {
    return Status(Code::kInvalid, path + ": is empty; a block has a byte at least");
  }
  return bytes;
}

Result<kv::ChainPut> PutOf(const BlockFlags& flags, std::vector<BlockId> chain,
                           const std::vector<uint8_t>& bytes) {
  kv::ChainPut put;
  put.chain = std::move(chain);
  put.first = static_cast<uint32_t>(put.chain.size() - 1);
  put.blocks.push_back({put.chain.back(), bytes});
  put.ack = flags.durable ? kv::Ack::kDurable : kv::Ack::kCached;
  if (!flags.ttl.empty()) {
    KV_ASSIGN_OR_RETURN(const kv::Nanos ttl, kv::ParseDuration(flags.ttl));
    const int64_t seconds = ttl.value / 1'000'000'000;
    if (seconds < 1 || seconds > UINT32_MAX) {
      return Status(Code::kInvalid, "--ttl: '" + flags.ttl + "' is out of range: at least 1 s");
    }
    put.ttl_seconds = static_cast<uint32_t>(seconds);
  }
  if (!flags.keep_until.empty()) {
    KV_ASSIGN_OR_RETURN(put.keep_until, ParseTime(flags.keep_until, UnixNow()));
    if (put.keep_until <= UnixNow()) {
      return Status(Code::kInvalid, "--keep-until: '" + flags.keep_until + "' has passed");
    }
  }
  return put;
}

Status Put(Invocation& invocation, const BlockFlags& flags) {
  KV_ASSIGN_OR_RETURN(std::vector<BlockId> chain, ParseKey(flags.key));
  const BlockId id = chain.back();
  KV_ASSIGN_OR_RETURN(const std::vector<uint8_t> bytes, ReadInput(flags.file));
  KV_ASSIGN_OR_RETURN(kv::ChainPut put, PutOf(flags, std::move(chain), bytes));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(put.space, session->AttachTo(flags.space, flags.token_file));
  const auto outcomes = session->Ask<std::vector<Status>>(
      [&put](RemoteStore& store) { return store.Put(put); });
  for (const Status& outcome : outcomes) KV_RETURN_IF_ERROR(outcome);
  const Json json = {{"id", id.ToHex()}, {"size", bytes.size()}};
  invocation.console.Write(
      invocation.console.json
          ? ToText(json)
          : "put " + id.ToHex() + ", " + kv::RoughBytes(static_cast<double>(bytes.size())) + "\n");
  return Status();
}

Status MissOf(const BlockFlags& flags, kv::MissReason reason) {
  static constexpr std::array<const char*, kv::kMissReasons> kReasons = {
      "it is not there", "it is not there", "it has expired", "it was evicted",
      "too much of it cannot be read now"};
  return Status(Code::kNotFound, "'" + flags.key.key + "' is a miss in " + flags.space + ": " +
                                     kReasons[static_cast<size_t>(reason)]);
}

// Whether a terminal would take it amiss.
bool LooksBinary(kv::ByteSpan bytes) {
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), 4096))) {
    if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') return true;
  }
  return false;
}

Status WriteOutput(Invocation& invocation, const std::string& path, kv::ByteSpan bytes) {
  if (path == "-") {
    if (Console::OutputIsTerminal() && LooksBinary(bytes)) {
      return Status(Code::kInvalid, "the block is not text: name a file with -o FILE, or pipe it");
    }
    invocation.console.Write(
        std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    return Status();
  }
  const File file(std::fopen(path.c_str(), "wb"));
  if (file == nullptr) return FileError(path, "write it");
  if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size() ||
      std::fflush(file.get()) != 0) {
    return FileError(path, "finish writing it");
  }
  return Status();
}

Result<kv::EachHit::Block> Find(Session& session, kv::NamespaceId space,
                                const std::vector<BlockId>& chain) {
  const auto at = static_cast<uint32_t>(chain.size() - 1);
  KV_ASSIGN_OR_RETURN(const kv::EachHit hit,
                      session.Ask<Result<kv::EachHit>>([&](RemoteStore& store) {
                        return store.LookupEach(space, chain, at, kv::LeaseOrder{});
                      }));
  if (hit.blocks.empty()) return Status(Code::kCorrupt, "the store's answer names no block");
  return hit.blocks.back();
}

Status Get(Invocation& invocation, const BlockFlags& flags) {
  KV_ASSIGN_OR_RETURN(const std::vector<BlockId> chain, ParseKey(flags.key));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::NamespaceId space,
                      session->AttachTo(flags.space, flags.token_file));
  KV_ASSIGN_OR_RETURN(const kv::EachHit::Block found, Find(*session, space, chain));
  if (found.size == 0) return MissOf(flags, found.miss);
  kv::Bytes room(found.size);
  std::vector<kv::BlockRead> reads;
  reads.push_back({.id = chain.back(), .into = room.sectors()});
  const kv::Instant deadline = kv::Poller::Now() + kv::Seconds(60);
  const auto results = session->Ask<std::vector<kv::BlockReadResult>>(
      [&](RemoteStore& store) { return store.Get(space, chain, reads, deadline); });
  if (results.size() != 1) return Status(Code::kCorrupt, "the store's answer names no block");
  if (results[0].status.code() == Code::kNotFound) return MissOf(flags, kv::MissReason::kEvicted);
  KV_RETURN_IF_ERROR(results[0].status);
  KV_RETURN_IF_ERROR(WriteOutput(invocation, flags.file, room.span().first(results[0].size)));
  if (invocation.console.json && flags.file != "-") {
    invocation.console.Write(
        ToText({{"id", chain.back().ToHex()}, {"size", results[0].size}, {"file", flags.file}}));
  }
  return Status();
}

Status Delete(Invocation& invocation, const BlockFlags& flags) {
  KV_ASSIGN_OR_RETURN(const std::vector<BlockId> chain, ParseKey(flags.key));
  KV_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(invocation.options));
  KV_ASSIGN_OR_RETURN(const kv::NamespaceId space,
                      session->AttachTo(flags.space, flags.token_file));
  KV_ASSIGN_OR_RETURN(const kv::EachHit::Block found, Find(*session, space, chain));
  if (found.size == 0) return MissOf(flags, found.miss);
  const auto at = static_cast<uint32_t>(chain.size() - 1);
  KV_RETURN_IF_ERROR(session->Ask<Status>(
      [&](RemoteStore& store) { return store.Delete(space, chain, at); }));
  invocation.console.Write(invocation.console.json ? ToText({{"deleted", chain.back().ToHex()}})
                                                   : "deleted " + chain.back().ToHex() + "\n");
  return Status();
}

}  // namespace

void AddPutVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("put", "store a file as one block");
  auto flags = std::make_shared<BlockFlags>();
  AddBlockOptions(*verb, *flags);
  verb->add_option("FILE", flags->file, "what to store; -: standard input")
      ->type_name("")
      ->capture_default_str();
  verb->add_option("--ttl", flags->ttl, "keep it so long (default: the namespace's)")
      ->type_name("TIME");
  verb->add_option("--keep-until", flags->keep_until,
                   "never evict it before: '3 d', or 2026-12-31T23:59:59Z")
      ->type_name("TIME");
  verb->add_flag("--durable", flags->durable, "return when it would survive a power cut");
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, Put);
}

void AddGetVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand("get", "write a block to a file or standard output");
  auto flags = std::make_shared<BlockFlags>();
  AddBlockOptions(*verb, *flags);
  verb->add_option("-o,--output", flags->file, "where to; -: standard output")
      ->type_name("FILE")
      ->capture_default_str();
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, Get);
}

void AddDeleteVerb(CLI::App& app, Invocation& invocation) {
  CLI::App* verb = app.add_subcommand(
      "delete", "remove a block, with the others that were put together with it");
  auto flags = std::make_shared<BlockFlags>();
  AddBlockOptions(*verb, *flags);
  AddVerbOptions(*verb, invocation);
  OnVerb(*verb, invocation, flags, Delete);
}

}  // namespace cairn::tools
