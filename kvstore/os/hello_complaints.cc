// A peer that tries again and again is told of once.
#include "kvstore/os/hello_complaints.h"

#include <string>

namespace cairn::kv {

void HelloComplaints::Note(NodeId peer, const HelloOutcome& outcome) {
  using Kind = HelloOutcome::Kind;
  if (outcome.kind == Kind::kOk) {
    told_.erase(peer);
    return;
  }
  if (outcome.kind == Kind::kMalformed) ++stats_.malformed_frames;
  if (outcome.kind == Kind::kRefused) ++stats_.hellos_refused;
  if (outcome.kind == Kind::kUnproven) ++stats_.hellos_unproven;
  constexpr size_t kToldMax = 1024;  // A stranger may claim any name.
  const auto told = told_.find(peer);
  if (told != told_.end() ? told->second == outcome.kind : told_.size() >= kToldMax) return;
  told_[peer] = outcome.kind;
  // An incoming connection may have failed before its caller said who it is.
  const std::string who = peer == NodeId() ? "a node" : "node " + std::to_string(peer.value);
  const std::string words = "no connection with " + who + ": " + outcome.reason;
  if (outcome.kind == Kind::kEnded) {
    log_.Debug(words);
  } else {
    log_.Warning(words);
  }
}

}  // namespace cairn::kv
