// One easy handle for each call in flight; handles are kept with their connections.
#include "kvstore/control/etcd/etcd_http.h"

#include <curl/curl.h>

#include <algorithm>

namespace cairn::kv {
namespace {

constexpr uint64_t kAnswerSizeMax = 64 * kMiB;
constexpr size_t kIdleMax = 8;
constexpr long kConnectTimeoutMs = 1000;

long ToMillis(Nanos span) {
  return static_cast<long>(std::max<int64_t>(span.value / 1'000'000, 1));
}

// The request cannot have been seen by a server.
bool IsUnsent(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE;
}

}  // namespace

struct EtcdHttp::Exchange {
  std::string body;
  const Enough* enough = nullptr;
  bool ended = false;

  static size_t Take(char* bytes, size_t size, size_t count, void* user) {
    auto* exchange = static_cast<Exchange*>(user);
    if (exchange->body.size() + size * count > kAnswerSizeMax) return 0;
    exchange->body.append(bytes, size * count);
    exchange->ended = *exchange->enough && (*exchange->enough)(exchange->body);
    return exchange->ended ? 0 : size * count;  // 0 ends the transfer.
  }
};

EtcdHttp::EtcdHttp(const EtcdOptions& options) : options_(options) {
  KV_CHECK(!options_.endpoints.empty());
  KV_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

EtcdHttp::~EtcdHttp() {
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* EtcdHttp::TakeHandle() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return curl_easy_init();
  void* handle = idle_.back();
  idle_.pop_back();
  return handle;
}

void EtcdHttp::GiveHandle(void* handle) {
  curl_easy_reset(handle);
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) {
    idle_.push_back(handle);
  } else {
    curl_easy_cleanup(handle);
  }
}

Result<HttpReply> EtcdHttp::Post(const std::string& path, const std::string& body, Nanos timeout,
                                  Resend resend, const Enough& enough) {
  Status last(Code::kDeadline, "etcd: no time left");
  const size_t first = preferred_;
  const size_t count = options_.endpoints.size();
  for (size_t i = 0; i < count && timeout > Nanos{0}; ++i) {
    const size_t index = (first + i) % count;
    // What is left is shared out to the endpoints that have not been tried.
    const Nanos share = resend == Resend::kFreely && !enough
                            ? Nanos{timeout.value / static_cast<int64_t>(count - i)}
                            : timeout;
    bool sent = false;
    auto answer = PostTo(options_.endpoints[index], path, body, share, enough, sent);
    if (answer.ok()) preferred_ = index;
    if (answer.ok() || (sent && resend == Resend::kUnsent)) return answer;
    last = answer.status();
    timeout = timeout - share;
    if (last.code() == Code::kUnavailable) timeout = timeout + share;  // It failed at once.
  }
  return last;
}

Result<HttpReply> EtcdHttp::PostTo(const std::string& endpoint, const std::string& path,
                                    const std::string& body, Nanos timeout, const Enough& enough,
                                    bool& sent) {
  CURL* handle = TakeHandle();
  if (handle == nullptr) return Status(Code::kUnavailable, "etcd: libcurl has no memory");
  Exchange exchange;
  exchange.enough = &enough;
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");
  const std::string url = endpoint + path;
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, ToMillis(timeout));
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   std::min(kConnectTimeoutMs, ToMillis(timeout)));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Exchange::Take);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  if (!options_.ca_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, options_.ca_file.c_str());
#if LIBCURL_VERSION_NUM >= 0x075700
    // Read again soon after the file has changed: the default is a day.
    curl_easy_setopt(handle, CURLOPT_CA_CACHE_TIMEOUT, 60L);
#endif
  }
  if (!options_.certificate_file.empty()) {
    curl_easy_setopt(handle, CURLOPT_SSLCERT, options_.certificate_file.c_str());
    curl_easy_setopt(handle, CURLOPT_SSLKEY, options_.key_file.c_str());
  }
  const CURLcode code = curl_easy_perform(handle);
  HttpReply answer;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_slist_free_all(headers);
  GiveHandle(handle);
  sent = !IsUnsent(code);
  answer.body = std::move(exchange.body);
  if (code == CURLE_OK || exchange.ended) return answer;
  if (code == CURLE_OPERATION_TIMEDOUT && enough) {
    answer.status = 0;
    return answer;
  }
  const Code reason = code == CURLE_OPERATION_TIMEDOUT ? Code::kDeadline : Code::kUnavailable;
  return Status(reason, "etcd at " + endpoint + ": " + curl_easy_strerror(code));
}

}  // namespace cairn::kv
