// Signs what the tests ask for, as OpenSSL makes it.
#include "tests/support/tls_authority.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <utility>

#include "kvstore/base/check.h"

namespace cairn::testing {
namespace {

constexpr int64_t kDay = 24 * 60 * 60;

struct Free {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

Key NewKey() { return Key(EVP_EC_gen("P-256")); }

Certificate NewCertificate(EVP_PKEY* key, const std::string& name, bool expired, long serial) {
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -2 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), expired ? -kDay : kDay);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const uint8_t*>(name.c_str()), -1, -1, 0);
  return made;
}

void Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  KV_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::unique_ptr<std::FILE, Free> Create(const std::string& path) {
  std::unique_ptr<std::FILE, Free> file(std::fopen(path.c_str(), "w"));
  KV_CHECK(file != nullptr);
  return file;
}

}  // namespace

struct TlsAuthority::Keys {
  Key key = NewKey();
  Certificate certificate;
};

TlsAuthority::TlsAuthority(std::string folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), keys_(std::make_unique<Keys>()) {
  keys_->certificate = NewCertificate(keys_->key.get(), name_, false, 1);
  X509* const own = keys_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  Extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  KV_CHECK(X509_sign(own, keys_->key.get(), EVP_sha256()) > 0);
  PEM_write_X509(Create(ca_file()).get(), own);
}

TlsAuthority::~TlsAuthority() = default;

std::string TlsAuthority::ca_file() const { return folder_ + "/" + name_ + ".pem"; }

kv::TlsFiles TlsAuthority::NewFiles(const Issue& what) {
  ++issued_;
  const Key key = NewKey();
  const Certificate made = NewCertificate(key.get(), what.host, what.expired, 1 + issued_);
  X509* const issuer = keys_->certificate.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
  Extend(made.get(), issuer, NID_subject_alt_name, "DNS:" + what.host + ",IP:127.0.0.1");
  KV_CHECK(X509_sign(made.get(), keys_->key.get(), EVP_sha256()) > 0);
  const std::string path = folder_ + "/" + name_ + "-" + std::to_string(issued_);
  kv::TlsFiles files{
      .cert_file = path + ".pem", .key_file = path + ".key", .ca_file = ca_file()};
  PEM_write_X509(Create(files.cert_file).get(), made.get());
  PEM_write_PrivateKey(Create(files.key_file).get(), key.get(), nullptr, nullptr, 0, nullptr,
                       nullptr);
  return files;
}

}  // namespace cairn::testing
