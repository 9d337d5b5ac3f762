// The fields of the index's types, which only nodes tell each other. New ones are named here, too.
#pragma once

#include "kvstore/index/index_replica.h"
#include "kvstore/wire/field_lists.h"

namespace cairn::kv::wire {

template <typename Io>
void NameFields(Io& io, For<Io, StripeName>& name) {
  auto& [space, run, stripe] = name;
  io.Id(space);
  io.Id(run);
  io.Id(stripe);
}

template <typename Io>
void UseFields(Io& io, For<Io, StripeUse>& use) {
  auto& [expires_at, last_access, keep_until] = use;
  io.Int(expires_at.value);
  io.Int(last_access);
  io.Int(keep_until);
}

template <typename Io>
void StateFields(Io& io, For<Io, StripeState>& state) {
  auto& [space, expires_at, last_access, keep_until, position, ttl_seconds, payload_bytes, kind,
         hit] = state;
  io.Id(space);
  io.Int(expires_at.value);
  io.Int(last_access);
  io.Int(keep_until);
  io.Int(position);
  io.Int(ttl_seconds);
  io.Int(payload_bytes);
  io.Enum(kind, RetentionKind::kRefreshed);
  io.Bool(hit);
}

template <typename Io>
void IndexedFields(Io& io, For<Io, IndexedStripe>& stripe) {
  auto& [manifest, expires_at, position, keep_until, last_access, hit] = stripe;
  wire::Fields(io, manifest);
  io.Int(expires_at.value);
  io.Int(position);
  io.Int(keep_until);
  io.Int(last_access);
  io.Bool(hit);
}

}  // namespace cairn::kv::wire
