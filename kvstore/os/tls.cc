// Two memory buffers between OpenSSL and the socket; one SSL_CTX serves both roles.
#include "kvstore/os/tls.h"

#include <arpa/inet.h>
#include <time.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace cairn::kv {
namespace {

// AES-GCM is good for 2^24.5 records of 16 KiB under one key (RFC 8446, 5.5): 388 GiB.
constexpr uint64_t kBytesOfOneKeyMax = 64 * kGiB;

std::string ErrorText() {
  std::string text;
  for (unsigned long error = ERR_get_error(); error != 0; error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (!text.empty()) text += ": ";
    text += reason != nullptr ? reason : "unknown error";
  }
  return text.empty() ? "no reason given" : text;
}

int IntSize(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

bool IsAddress(const std::string& name) {
  in6_addr room;
  return inet_pton(AF_INET, name.c_str(), &room) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &room) == 1;
}

UnixMillis EndOf(const X509* certificate) {
  tm parts{};
  KV_CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1);
  return {int64_t{timegm(&parts)} * 1000};
}

class OpenSslSession final : public TlsSession {
 public:
  OpenSslSession(SSL* ssl, TlsRole role, const std::string& peer_name) : ssl_(ssl) {
    received_ = BIO_new(BIO_s_mem());
    to_send_ = BIO_new(BIO_s_mem());
    KV_CHECK(received_ != nullptr && to_send_ != nullptr);
    SSL_set_bio(ssl_.get(), received_, to_send_);  // It owns both.
    if (role == TlsRole::kCallee) {
      SSL_set_accept_state(ssl_.get());
      return;
    }
    SSL_set_connect_state(ssl_.get());
    if (peer_name.empty()) return;
    X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
    if (IsAddress(peer_name)) {
      KV_CHECK(X509_VERIFY_PARAM_set1_ip_asc(wanted, peer_name.c_str()) == 1);
    } else {
      KV_CHECK(X509_VERIFY_PARAM_set1_host(wanted, peer_name.c_str(), peer_name.size()) == 1);
      SSL_set_tlsext_host_name(ssl_.get(), peer_name.c_str());
    }
  }

  Status Handshake() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    if (done == 1 || SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return {};
    const int64_t verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK) {
      return {Code::kInvalid, std::string("its certificate is refused: ") +
                                  X509_verify_cert_error_string(verdict)};
    }
    return {Code::kInvalid, "no TLS 1.3 session: " + ErrorText()};
  }
  bool established() const override { return SSL_is_init_finished(ssl_.get()) == 1; }

  void Feed(ByteSpan sealed) override {
    KV_CHECK(BIO_write(received_, sealed.data(), IntSize(sealed.size())) ==
             IntSize(sealed.size()));
  }

  Result<size_t> Open(MutableByteSpan into) override {
    size_t filled = 0;
    while (filled < into.size()) {
      ERR_clear_error();
      const int got =
          SSL_read(ssl_.get(), into.data() + filled, IntSize(into.size() - filled));
      if (got > 0) {
        filled += static_cast<size_t>(got);
        continue;
      }
      const int why = SSL_get_error(ssl_.get(), got);
      if (why == SSL_ERROR_WANT_READ || filled > 0) break;
      if (why == SSL_ERROR_ZERO_RETURN) return Status(Code::kUnavailable, "the peer has ended it");
      return Status(Code::kUnavailable, "TLS: " + ErrorText());
    }
    return filled;
  }

  Status Seal(ByteSpan plain) override {
    bytes_of_key_ += plain.size();
    if (bytes_of_key_ > kBytesOfOneKeyMax) {
      bytes_of_key_ = 0;
      SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    while (!plain.empty()) {
      ERR_clear_error();
      const int put = SSL_write(ssl_.get(), plain.data(), IntSize(plain.size()));
      if (put <= 0) return {Code::kUnavailable, "TLS: " + ErrorText()};
      plain = plain.subspan(static_cast<size_t>(put));
    }
    return {};
  }

  void Drain(std::vector<uint8_t>& into) override {
    const size_t before = into.size();
    const size_t more = BIO_ctrl_pending(to_send_);
    if (more == 0) return;
    into.resize(before + more);
    KV_CHECK(BIO_read(to_send_, into.data() + before, IntSize(more)) == IntSize(more));
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  const std::unique_ptr<SSL, Free> ssl_;
  BIO* received_ = nullptr;
  BIO* to_send_ = nullptr;
  uint64_t bytes_of_key_ = 0;
};

class OpenSslContext final : public TlsContext {
 public:
  OpenSslContext() : context_(SSL_CTX_new(TLS_method())) {
    KV_CHECK(context_ != nullptr);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_3_VERSION);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_RELEASE_BUFFERS);
    // Sessions are not resumed: connections live long.
    SSL_CTX_set_num_tickets(context_.get(), 0);
    SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_OFF);
  }

  Status Read(const TlsFiles& files) {
    ERR_clear_error();
    SSL_CTX* const context = context_.get();
    has_ca_ = !files.ca_file.empty();
    if (files.cert_file.empty() != files.key_file.empty()) {
      return {Code::kInvalid, "TLS: a certificate and its key go together"};
    }
    if (has_ca_ && SSL_CTX_load_verify_file(context, files.ca_file.c_str()) != 1) {
      return Broken(files.ca_file, "no certificates of authorities");
    }
    if (!has_ca_) SSL_CTX_set_default_verify_paths(context);
    if (files.cert_file.empty()) return {};
    if (SSL_CTX_use_certificate_chain_file(context, files.cert_file.c_str()) != 1) {
      return Broken(files.cert_file, "no certificate");
    }
    if (SSL_CTX_use_PrivateKey_file(context, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      return Broken(files.key_file, "not the key of the certificate");
    }
    return {};
  }

  std::unique_ptr<TlsSession> NewSession(TlsRole role,
                                         const std::string& peer_name) const override {
    SSL* const ssl = SSL_new(context_.get());
    KV_CHECK(ssl != nullptr);
    const bool asks = role == TlsRole::kCaller || has_ca_;
    SSL_set_verify(ssl, asks ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE,
                   nullptr);
    return std::make_unique<OpenSslSession>(ssl, role, peer_name);
  }

  std::optional<UnixMillis> ends_at() const override {
    const X509* const own = SSL_CTX_get0_certificate(context_.get());
    if (own == nullptr) return std::nullopt;
    UnixMillis first = EndOf(own);
    STACK_OF(X509)* chain = nullptr;
    SSL_CTX_get0_chain_certs(context_.get(), &chain);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
      first = std::min(first, EndOf(sk_X509_value(chain, i)));
    }
    return first;
  }

 private:
  static Status Broken(const std::string& file, const std::string& what) {
    return {Code::kInvalid, "TLS: " + file + " has " + what + " (PEM): " + ErrorText()};
  }

  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  const std::unique_ptr<SSL_CTX, Free> context_;
  bool has_ca_ = false;
};

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const TlsFiles& files) {
  auto context = std::make_shared<OpenSslContext>();
  KV_RETURN_IF_ERROR(context->Read(files));
  return std::shared_ptr<const TlsContext>(std::move(context));
}

}  // namespace cairn::kv
