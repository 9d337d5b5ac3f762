// Each stripe is judged once a call: neighbours share it.
#include "kvstore/client/run_judge.h"

#include <algorithm>

namespace cairn::kv {

// Judges stripes as of one moment, and remembers the last one.
class RunJudge::AtOneMoment {
 public:
  explicit AtOneMoment(const RunJudge& judge) : judge_(judge), now_(judge.clock_.UnixNow()) {}

  MissReason WhyNot(const KnownStripe& stripe) {
    if (&stripe != last_) {
      last_ = &stripe;
      verdict_ = judge_.WhyNot(stripe, now_);
    }
    return verdict_;
  }

 private:
  const RunJudge& judge_;
  const UnixMillis now_;
  const KnownStripe* last_ = nullptr;
  MissReason verdict_ = MissReason::kNone;
};

MissReason RunJudge::WhyNot(const KnownStripe& stripe) const {
  return WhyNot(stripe, clock_.UnixNow());
}

MissReason RunJudge::WhyNot(const KnownStripe& stripe, UnixMillis now) const {
  const Manifest& manifest = stripe.manifest;
  if (stripe.gone || gone_.IsGoing(manifest.stripe)) return gone_.WhyGone(manifest);
  if (now >= stripe.expires_at) return MissReason::kExpired;
  if (targets_.ShardsAtHand(manifest) < manifest.data_shards) {
    // It may also be a copy of what was removed since.
    const MissReason reason = gone_.Why(manifest.space, manifest.blocks.front().id);
    return reason == MissReason::kNone ? MissReason::kUnavailable : reason;
  }
  return MissReason::kNone;
}

uint32_t RunJudge::Spare(const KnownStripe& stripe) const {
  const uint32_t at_hand = targets_.ShardsAtHand(stripe.manifest);
  return at_hand - std::min<uint32_t>(at_hand, stripe.manifest.data_shards);
}

RunJudge::Answer RunJudge::Find(const KnownRun& run, const NamespaceId& space, BlockId id) const {
  return FindPrefix(run, space, {&id, 1}).front();
}

std::vector<RunJudge::Answer> RunJudge::FindPrefix(const KnownRun& run, const NamespaceId& space,
                                                   std::span<const BlockId> wanted) const {
  std::vector<Answer> answers;
  answers.reserve(wanted.size());
  AtOneMoment judge(*this);
  for (const BlockId& id : wanted) {
    Answer& answer = answers.emplace_back();
    for (const KnownRun::Place& place : run.Find(id)) {
      const MissReason reason = judge.WhyNot(*place.stripe);
      if (answer.place == nullptr) answer.reason = reason;
      if (reason != MissReason::kNone) continue;
      // What a failed put left behind must not stand before what a later one stored whole.
      if (answer.place == nullptr || Spare(*place.stripe) > Spare(*answer.place->stripe)) {
        answer.place = &place;
      }
    }
    if (answer.reason == MissReason::kAbsent) answer.reason = WhyUnknown(run, space, id);
    if (answer.place == nullptr) break;
  }
  return answers;
}

bool RunJudge::AllUsable(const KnownRun& run, std::span<const BlockId> wanted) const {
  AtOneMoment judge(*this);
  return std::all_of(wanted.begin(), wanted.end(), [&](const BlockId& id) {
    const auto places = run.Find(id);
    return std::any_of(places.begin(), places.end(), [&](const KnownRun::Place& place) {
      return judge.WhyNot(*place.stripe) == MissReason::kNone;
    });
  });
}

MissReason RunJudge::WhyUnknown(const KnownRun& run, const NamespaceId& space, BlockId id) const {
  const MissReason reason = gone_.Why(space, id);
  if (reason != MissReason::kNone) return reason;
  // Too few replicas answered to be sure.
  return run.complete ? MissReason::kAbsent : MissReason::kUnavailable;
}

}  // namespace cairn::kv
