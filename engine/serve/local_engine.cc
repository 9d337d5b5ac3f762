// Checks and renders on the caller's thread; everything else happens on the engine's own.
#include "engine/serve/local_engine.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/serve/engine_core.h"

namespace cairn::engine {

namespace {

constexpr size_t kStopTextsMax = 4;
constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};

uint32_t ContextOf(const Backend& backend, const KvPool& pool, uint32_t wanted) {
  const uint64_t held = uint64_t{pool.block_count()} * pool.layout().block_tokens;
  const uint32_t trained = backend.shape().context_max;
  const uint32_t context = wanted == 0 ? trained : std::min(wanted, trained);
  return static_cast<uint32_t>(std::min<uint64_t>(context, held));
}

kv::Status Invalid(std::string message) {
  return kv::Status(kv::Code::kInvalid, std::move(message));
}

}  // namespace

class LocalEngine::Countdown final : public GenerateListener {
 public:
  Countdown(std::shared_ptr<GenerateListener> inner, LocalEngine& engine)
      : inner_(std::move(inner)), engine_(engine) {}

  void OnStart(const Usage& usage) override { inner_->OnStart(usage); }
  void OnText(std::string_view text) override { inner_->OnText(text); }
  void OnEnd(FinishReason reason, const Usage& usage, const kv::Status& status) override {
    engine_.requests_.fetch_sub(1);
    inner_->OnEnd(reason, usage, status);
  }

 private:
  const std::shared_ptr<GenerateListener> inner_;
  LocalEngine& engine_;
};

LocalEngine::LocalEngine(Parts parts, LocalEngineOptions options)
    : parts_(parts),
      options_(std::move(options)),
      context_tokens_max_(
          ContextOf(parts.backend, parts.backend.pool(), options_.context_tokens_max)),
      thread_([this] { Run(); }) {}

LocalEngine::~LocalEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_changed_.notify_all();
  thread_.join();
}

kv::Status LocalEngine::Check(const GenerateRequest& request) const {
  const SamplingParams& sampling = request.sampling;
  if (request.messages.empty()) return Invalid("messages: at least one is needed");
  for (const ChatMessage& message : request.messages) {
    // Many templates would take any word for a role; models know these.
    if (std::find(std::begin(kRoles), std::end(kRoles), message.role) == std::end(kRoles)) {
      return Invalid("messages: unknown role \"" + message.role + "\"");
    }
  }
  if (!(sampling.temperature >= 0 && sampling.temperature <= 2)) {
    return Invalid("temperature: must be in [0, 2]");
  }
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) return Invalid("top_p: must be in (0, 1]");
  if (request.stop.size() > kStopTextsMax) return Invalid("stop: at most 4 texts");
  if (request.completion_tokens_max == 0u) return Invalid("max_tokens: must be at least 1");
  return kv::Status();
}

kv::Result<RequestId> LocalEngine::Submit(GenerateRequest request,
                                          std::shared_ptr<GenerateListener> listener) {
  KV_RETURN_IF_ERROR(Check(request));
  KV_ASSIGN_OR_RETURN(std::vector<TokenId> prompt, parts_.codec.Render(request.messages));
  if (prompt.empty()) return Invalid("messages: the prompt is empty");
  if (prompt.size() >= context_tokens_max_) {
    return Invalid("the prompt has " + std::to_string(prompt.size()) +
                   " tokens, and the model's context of " + std::to_string(context_tokens_max_) +
                   " tokens must also hold the answer");
  }
  if (requests_.fetch_add(1) >= options_.requests_max) {
    requests_.fetch_sub(1);
    return kv::Status(kv::Code::kOverloaded, "too many requests at the same time, try again later");
  }
  const auto room = context_tokens_max_ - static_cast<uint32_t>(prompt.size());
  const RequestId id{next_id_.fetch_add(1)};
  Job job{.id = id,
          .prompt = std::move(prompt),
          .completion_tokens_max = std::min(room, request.completion_tokens_max.value_or(room)),
          .sampling = request.sampling,
          .stop = std::move(request.stop),
          .listener = std::make_shared<Countdown>(std::move(listener), *this)};
  Post([this, job = std::move(job)] { core_->Add(job); });
  return id;
}

void LocalEngine::Cancel(RequestId id) {
  Post([this, id] { core_->Cancel(id); });
}

EngineInfo LocalEngine::info() const {
  return {.model_name = options_.model_name,
          .context_tokens_max = context_tokens_max_,
          .block_tokens = parts_.backend.pool().layout().block_tokens,
          .parameters = parts_.backend.shape().parameters};
}

EngineStats LocalEngine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void LocalEngine::Post(std::function<void()> call) {
  // Notified under the lock: after the last call has run the engine may be destroyed.
  const std::lock_guard lock(mutex_);
  posted_.push_back(std::move(call));
  posted_changed_.notify_one();
}

bool LocalEngine::RunPosted(Wait wait) {
  std::vector<std::function<void()>> calls;
  bool stopping = false;
  {
    std::unique_lock lock(mutex_);
    if (wait != Wait::kNo) {
      posted_changed_.wait(lock, [&] {
        return !posted_.empty() || (stopping_ && wait == Wait::kForCallsOrStop);
      });
    }
    calls.swap(posted_);
    stopping = stopping_;
  }
  for (const std::function<void()>& call : calls) call();
  return stopping;
}

void LocalEngine::Run() {
  EngineCore core({parts_.backend, parts_.codec, parts_.store, parts_.clock},
                  {.context_tokens_max = context_tokens_max_,
                   .sequences_max = options_.sequences_max,
                   .load_only_if_faster = options_.load_only_if_faster,
                   .seed = options_.seed,
                   .post = [this](std::function<void()> call) { Post(std::move(call)); }});
  core_ = &core;
  bool cancelled = false;
  Wait wait = Wait::kForCallsOrStop;
  while (!cancelled || !core.idle()) {
    if (RunPosted(wait) && !cancelled) {
      core.CancelAll();
      cancelled = true;
    }
    const bool computed = core.Step();
    // Once all is cancelled, what is left are the store's completions: they come as calls.
    wait = cancelled ? Wait::kForCalls : Wait::kForCallsOrStop;
    if (computed) wait = Wait::kNo;
    const std::lock_guard lock(mutex_);
    stats_ = core.stats();
  }
}

}  // namespace cairn::engine
