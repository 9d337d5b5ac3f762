// Routes requests, checks who calls, and starts generations.
#include "gateway/api/api_handler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>

#include "gateway/api/json_text.h"

namespace cairn::gateway {
namespace {

constexpr std::string_view kModelsPath = "/v1/models";

// Seeds the names of requests: unique is enough, secret they need not be.
uint64_t SeedOfNow(const kv::Clock& clock, const void* self) {
  const std::array<uint64_t, 3> unique{static_cast<uint64_t>(clock.UnixNow().value),
                                       static_cast<uint64_t>(clock.Now().nanos),
                                       reinterpret_cast<uint64_t>(self)};
  const kv::Sha256Digest digest =
      kv::Sha256({reinterpret_cast<const uint8_t*>(unique.data()), sizeof(unique)});
  uint64_t seed = 0;
  std::copy_n(digest.data(), sizeof(seed), reinterpret_cast<uint8_t*>(&seed));
  return seed;
}

// Takes as long wherever the two differ.
bool EqualInConstantTime(const kv::Sha256Digest& a, const kv::Sha256Digest& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// "application/json", with or without parameters. Asking for it is also what keeps web pages of
// others from calling a server on this machine: browsers ask first before they send this type.
bool IsJson(const std::string* content_type) {
  if (content_type == nullptr) return false;
  const std::string_view whole(*content_type);
  const std::string type = LowerCase(Trimmed(whole.substr(0, whole.find(';'))));
  return type == "application/json" || type.ends_with("+json");
}

// %2F and its like; anything malformed stays as it is.
std::string PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* first = text.data() + i + 1;
      const auto parsed = std::from_chars(first, first + 2, code, 16);
      if (parsed.ec == std::errc() && parsed.ptr == first + 2) {
        decoded += static_cast<char>(code);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

bool IsModelPath(std::string_view path) {
  return path.starts_with(kModelsPath) &&
         (path.size() == kModelsPath.size() || path[kModelsPath.size()] == '/');
}

Route RouteOf(std::string_view path) {
  if (path == "/v1/chat/completions") return Route::kChat;
  if (IsModelPath(path)) return Route::kModels;
  if (path == "/health") return Route::kHealth;
  if (path == "/metrics") return Route::kMetrics;
  return Route::kOther;
}

Response JsonResponse(std::string body) {
  return {.content_type = "application/json", .headers = {}, .body = std::move(body)};
}

}  // namespace

// Counts and logs one chat for the handler, and lets it go at the end.
class ApiHandler::Observer final : public ChatSessionObserver {
 public:
  Observer(ApiHandler& handler, std::string id, kv::Instant arrived)
      : handler_(handler), id_(std::move(id)), arrived_(arrived) {}

  void OnFirstToken(const engine::Usage& usage) override {
    handler_.metrics_.CountFirstToken(handler_.clock_.Now() - arrived_, usage);
  }

  void OnAnswered(int status, const engine::Usage& usage) override {
    const kv::Nanos took = handler_.clock_.Now() - arrived_;
    handler_.metrics_.CountTokens(usage);
    handler_.metrics_.CountRequest(Route::kChat, status, took);
    handler_.LogAnswer(id_, Route::kChat, status, took,
                       " prompt=" + std::to_string(usage.prompt_tokens) +
                           " cached=" + std::to_string(usage.cached_tokens) +
                           " completion=" + std::to_string(usage.completion_tokens));
    handler_.sessions_.Leave();  // The handler may be gone after this.
  }

 private:
  ApiHandler& handler_;
  const std::string id_;
  const kv::Instant arrived_;
};

ApiHandler::ApiHandler(ApiOptions options, engine::Engine& engine, kv::Clock& clock, kv::Log& log)
    : options_(std::move(options)),
      token_digest_(kv::Sha256(kv::AsBytes(options_.bearer_token))),
      engine_(engine),
      clock_(clock),
      log_(log),
      created_(clock.UnixNow().value / 1000),
      ids_(SeedOfNow(clock, this)) {}

void ApiHandler::Handle(Request request, std::shared_ptr<Exchange> exchange) {
  Call call;
  call.id = RequestId(request);
  call.arrived = clock_.Now();
  call.route = RouteOf(request.path);
  call.request = std::move(request);
  call.exchange = std::move(exchange);
  Dispatch(std::move(call));
}

Response ApiHandler::Refuse(int status, const std::string& message) {
  const std::string id = FreshId("req_");
  metrics_.CountRequest(Route::kOther, status, kv::Nanos{});
  LogAnswer(id, Route::kOther, status, kv::Nanos{}, "");
  Response response = ErrorResponse(FromHttp(status, message));
  response.headers.emplace_back("x-request-id", id);
  return response;
}

void ApiHandler::Dispatch(Call call) {
  switch (call.route) {
    case Route::kHealth:
      return Health(std::move(call));
    case Route::kMetrics:
      return MetricsText(std::move(call));
    case Route::kModels:
      return Models(std::move(call));
    case Route::kChat:
      return Chat(std::move(call));
    case Route::kOther:
      break;
  }
  const std::string shown = call.request.path.substr(0, 200);
  ReplyError(call, FromHttp(404, "unknown request URL: " + call.request.method + " " + shown));
}

// Checks.

std::optional<ApiError> ApiHandler::CheckMethod(const Call& call, std::string_view allowed) const {
  const std::string& method = call.request.method;
  if (method == allowed || (method == "HEAD" && allowed == "GET")) return std::nullopt;
  ApiError error =
      FromHttp(405, "method " + method + " is not allowed here, use " + std::string(allowed));
  error.headers = {{"Allow", std::string(allowed)}};
  return error;
}

std::optional<ApiError> ApiHandler::CheckToken(const Request& request) const {
  if (options_.bearer_token.empty()) return std::nullopt;
  constexpr std::string_view kScheme = "bearer ";
  const std::string* header = request.Header("authorization");
  const bool has_scheme =
      header != nullptr && LowerCase(header->substr(0, kScheme.size())) == kScheme;
  const std::string_view given =
      has_scheme ? Trimmed(std::string_view(*header).substr(kScheme.size())) : "";
  const bool right = EqualInConstantTime(kv::Sha256(kv::AsBytes(given)), token_digest_);
  if (has_scheme && right) return std::nullopt;
  ApiError error{.status = 401, .type = "invalid_request_error"};
  error.message = has_scheme ? "the API key is not the right one"
                             : "no API key was given: send 'Authorization: Bearer KEY'";
  error.code = "invalid_api_key";
  error.headers = {{"WWW-Authenticate", "Bearer"}};
  return error;
}

std::optional<ApiError> ApiHandler::CheckModel(const std::string& name) const {
  const std::string served = engine_.info().model_name;
  if (name == served) return std::nullopt;
  ApiError error = InvalidRequest(
      "the model '" + name.substr(0, 200) + "' does not exist; this server has '" + served + "'",
      "model");
  error.status = 404;
  error.code = "model_not_found";
  return error;
}

// Routes.

void ApiHandler::Health(Call call) {
  if (const auto error = CheckMethod(call, "GET")) return ReplyError(call, *error);
  if (stopping_) return ReplyError(call, Stopping());
  Reply(call,
        JsonResponse(R"({"status":"ok","model":)" + JsonString(engine_.info().model_name) + "}"));
}

void ApiHandler::MetricsText(Call call) {
  if (const auto error = CheckMethod(call, "GET")) return ReplyError(call, *error);
  std::vector<MetricFamily> families = EngineFamilies(engine_.stats());
  families.push_back({.name = "cairn_gateway_connections",
                      .help = "Connections open now.",
                      .samples = {{.value = static_cast<double>(options_.connections())}}});
  families.push_back({.name = "cairn_gateway_chats",
                      .help = "Chat completions under way now.",
                      .samples = {{.value = static_cast<double>(sessions_.now())}}});
  for (MetricsSource* source : options_.metrics_sources) {
    for (MetricFamily& family : source->CollectMetrics()) families.push_back(std::move(family));
  }
  Reply(call, {.content_type = "text/plain; version=0.0.4; charset=utf-8",
               .headers = {},
               .body = metrics_.Text(families)});
}

void ApiHandler::Models(Call call) {
  if (const auto error = CheckToken(call.request)) return ReplyError(call, *error);
  if (const auto error = CheckMethod(call, "GET")) return ReplyError(call, *error);
  const std::string_view path(call.request.path);
  if (path.size() <= kModelsPath.size() + 1) {
    return Reply(call, JsonResponse(R"({"object":"list","data":[)" + ModelJson() + "]}"));
  }
  const std::string name = PercentDecoded(path.substr(kModelsPath.size() + 1));
  if (const auto error = CheckModel(name)) return ReplyError(call, *error);
  Reply(call, JsonResponse(ModelJson()));
}

void ApiHandler::Chat(Call call) {
  if (const auto error = CheckToken(call.request)) return ReplyError(call, *error);
  if (const auto error = CheckMethod(call, "POST")) return ReplyError(call, *error);
  if (stopping_) return ReplyError(call, Stopping());
  if (!IsJson(call.request.Header("content-type"))) {
    return ReplyError(call, FromHttp(415, "send the body as 'Content-Type: application/json'"));
  }
  auto parsed = ParseChatRequest(call.request.body);
  call.request.body = {};
  if (const auto* error = std::get_if<ApiError>(&parsed)) return ReplyError(call, *error);
  auto& chat = std::get<ChatRequest>(parsed);
  if (const auto error = CheckModel(chat.model)) return ReplyError(call, *error);
  StartChat(std::move(call), std::move(chat));
}

void ApiHandler::StartChat(Call call, ChatRequest chat) {
  ChatSessionOptions options;
  options.identity = {
      .id = FreshId("chatcmpl-"), .created = clock_.UnixNow().value / 1000, .model = chat.model};
  options.stream = chat.stream;
  options.usage_field = chat.include_usage ? UsageField::kNull : UsageField::kAbsent;
  options.headers = {{"x-request-id", call.id}};
  const auto session = std::make_shared<ChatSession>(
      std::move(options), call.exchange, std::make_unique<Observer>(*this, call.id, call.arrived));
  sessions_.Enter();
  const auto submitted = engine_.Submit(std::move(chat.generate), session);
  if (!submitted.ok()) {
    sessions_.Leave();
    return ReplyError(call, FromStatus(submitted.status()));
  }
  session->Admitted([&engine = engine_, id = submitted.value()] { engine.Cancel(id); });
}

// Answers.

void ApiHandler::Reply(Call& call, Response response) {
  const kv::Nanos took = clock_.Now() - call.arrived;
  metrics_.CountRequest(call.route, response.status, took);
  LogAnswer(call.id, call.route, response.status, took, "");
  response.headers.emplace_back("x-request-id", call.id);
  call.exchange->Respond(std::move(response));
}

std::string ApiHandler::ModelJson() const {
  const engine::EngineInfo info = engine_.info();
  return R"({"id":)" + JsonString(info.model_name) + R"(,"object":"model","created":)" +
         std::to_string(created_) + R"(,"owned_by":"cairn","max_model_len":)" +
         std::to_string(info.context_tokens_max) + "}";
}

std::string ApiHandler::RequestId(const Request& request) {
  constexpr size_t kBytesMax = 128;
  const std::string* given = request.Header("x-request-id");
  const bool usable =
      given != nullptr && !given->empty() && given->size() <= kBytesMax && IsHeaderSafe(*given);
  return usable ? *given : FreshId("req_");
}

std::string ApiHandler::FreshId(std::string_view prefix) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string id(prefix);
  uint64_t bits = 0;
  for (int i = 0; i < 24; ++i) {
    if (i % 16 == 0) bits = ids_.Next();
    id += kHex[bits & 15];
    bits >>= 4;
  }
  return id;
}

void ApiHandler::LogAnswer(const std::string& id, Route route, int status, kv::Nanos took,
                           std::string_view more) {
  std::string line("gateway: ");
  line.append(id)
      .append(" ")
      .append(RouteName(route))
      .append(" ")
      .append(std::to_string(status))
      .append(" ");
  line.append(std::to_string(took.value / 1000)).append(" us").append(more);
  log_.Info(line);
}

}  // namespace cairn::gateway
