// Answers by the words of the prompt, on one thread, a call at a time for each request in turn.
#include "tests/support/fake_engine.h"

#include <algorithm>
#include <utility>

namespace cairn::testing {
namespace {

// "two words " -> {"two ", "words "}. White space stays with the word before it.
std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  bool in_space = true;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n';
    if (words.empty() || (in_space && !is_space)) words.emplace_back();
    words.back() += c;
    in_space = is_space;
  }
  return words;
}

}  // namespace

struct FakeEngine::Job {
  engine::RequestId id;
  std::shared_ptr<engine::GenerateListener> listener;
  std::string text;
  std::vector<std::string> words;
  size_t words_max = 0;
  size_t next_word = 0;
  engine::Usage usage;
  bool started = false;
  bool cancelled = false;

  bool Waits(bool released) const {
    return !cancelled && (text == "silent" || (text.starts_with("hold") && !released));
  }
};

FakeEngine::FakeEngine() : thread_([this] { Run(); }) {}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& job : jobs_) job->cancelled = true;
    changed_.notify_all();
  }
  thread_.join();
}

kv::Result<engine::RequestId> FakeEngine::Submit(
    engine::GenerateRequest request, std::shared_ptr<engine::GenerateListener> listener) {
  const std::lock_guard lock(mutex_);
  const std::string text = request.messages.back().content;
  last_request_ = request;
  if (text == "overload") return kv::Status(kv::Code::kOverloaded, "8 of 8 places are taken");
  if (text == "unavailable") return kv::Status(kv::Code::kUnavailable, "no worker is ready");
  if (text == "too long") {
    return kv::Status(kv::Code::kInvalid, "the prompt has 9000 tokens, the context 8192");
  }
  auto job = std::make_unique<Job>();
  job->id = {next_id_++};
  job->listener = std::move(listener);
  job->text = text;
  job->words = Words(text);
  job->words_max = request.completion_tokens_max.value_or(kContextTokens);
  job->usage = CountPrompt(request);
  const engine::RequestId id = job->id;
  jobs_.push_back(std::move(job));
  ++stats_.requests_started;
  stats_.requests_running = jobs_.size();
  changed_.notify_all();
  return id;
}

engine::Usage FakeEngine::CountPrompt(const engine::GenerateRequest& request) {
  engine::Usage usage;
  std::string prompt;
  for (const engine::ChatMessage& message : request.messages) {
    usage.prompt_tokens += static_cast<uint32_t>(Words(message.content).size());
    prompt += message.role + ":" + message.content + "\n";
  }
  const bool seen = !prompts_seen_.insert(prompt).second;
  if (seen && usage.prompt_tokens > 0) usage.cached_tokens = usage.prompt_tokens - 1;
  stats_.prompt_tokens += usage.prompt_tokens;
  stats_.cached_tokens += usage.cached_tokens;
  return usage;
}

void FakeEngine::Cancel(engine::RequestId id) {
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_) {
    if (job->id == id) job->cancelled = true;
  }
  changed_.notify_all();
}

engine::EngineInfo FakeEngine::info() const {
  return {.model_name = "fake-model",
          .context_tokens_max = kContextTokens,
          .block_tokens = 16,
          .parameters = 1};
}

engine::EngineStats FakeEngine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void FakeEngine::Release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

void FakeEngine::AwaitCancelled(uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stats_.requests_cancelled >= count; });
}

void FakeEngine::AwaitRunning(uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stats_.requests_running >= count; });
}

engine::GenerateRequest FakeEngine::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_request_;
}

void FakeEngine::Run() {
  std::unique_lock lock(mutex_);
  const auto is_ready = [this](const std::unique_ptr<Job>& job) { return !job->Waits(released_); };
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || std::ranges::any_of(jobs_, is_ready); });
    if (stopping_ && jobs_.empty()) return;
    std::vector<Job*> ready;
    for (const auto& job : jobs_) {
      if (is_ready(job)) ready.push_back(job.get());
    }
    for (Job* job : ready) {
      const bool cancelled = job->cancelled;
      lock.unlock();
      bool more = false;
      if (cancelled) {
        End(*job, engine::FinishReason::kCancelled, kv::Status());
      } else {
        more = Step(*job);
      }
      lock.lock();
      if (cancelled) ++stats_.requests_cancelled;
      if (!more) std::erase_if(jobs_, [&](const auto& each) { return each.get() == job; });
      stats_.requests_running = jobs_.size();
      changed_.notify_all();
    }
  }
}

bool FakeEngine::Step(Job& job) {
  if (job.text == "fail early" || (job.text == "fail late" && job.next_word == 1)) {
    End(job, engine::FinishReason::kError, kv::Status(kv::Code::kCorrupt, "a fault was planned"));
    return false;
  }
  if (!job.started) {
    job.started = true;
    job.listener->OnStart(job.usage);
    return true;
  }
  if (job.text == "endless") {
    job.listener->OnText("on and on ");
    ++job.usage.completion_tokens;
    return true;
  }
  if (job.next_word == job.words.size() || job.next_word == job.words_max) {
    const bool whole = job.next_word == job.words.size();
    End(job, whole ? engine::FinishReason::kStop : engine::FinishReason::kLength, kv::Status());
    return false;
  }
  ++job.usage.completion_tokens;
  job.listener->OnText(job.words[job.next_word++]);
  return true;
}

void FakeEngine::End(Job& job, engine::FinishReason reason, kv::Status status) {
  job.listener->OnEnd(reason, job.usage, status);
}

}  // namespace cairn::testing
