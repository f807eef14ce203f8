// The files of --shard-tls-cert, -key and -ca are checked before a connection needs them.
#include "common/options/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "common/options/table.h"

namespace penstock::options {
namespace {

using ::testing::HasSubstr;

// Writes NAME.pem, signed by itself, and NAME.key.
void MakePair(const std::string& name) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
  const std::unique_ptr<FILE, int (*)(FILE*)> pem(std::fopen((name + ".pem").c_str(), "w"),
                                                  std::fclose);
  const std::unique_ptr<FILE, int (*)(FILE*)> secret(std::fopen((name + ".key").c_str(), "w"),
                                                     std::fclose);
  ASSERT_EQ(PEM_write_X509(pem.get(), certificate.get()), 1);
  ASSERT_EQ(PEM_write_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
            1);
}

class ShardTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakePair(one_);
    MakePair(two_);
  }

  static absl::StatusOr<std::shared_ptr<const TlsIdentity>> Read(const std::string& certificate,
                                                                 const std::string& key) {
    Sources sources;
    sources.arguments = {"--model-id=m", "--shard-tls-cert=" + certificate,
                         "--shard-tls-key=" + key, "--shard-tls-ca=" + certificate};
    sources.environment = [](const std::string&) -> const char* { return nullptr; };
    const auto values = Parse(ProgramAs(kRouter, "penstock-router"), sources);
    if (!values.ok()) return values.status();
    return ReadShardTls(*values);
  }

  static std::string Said(const std::string& certificate, const std::string& key) {
    return std::string(Read(certificate, key).status().message());
  }

  const std::string one_ = ::testing::TempDir() + "/penstock-tls-one";
  const std::string two_ = ::testing::TempDir() + "/penstock-tls-two";
};

TEST_F(ShardTlsTest, ACertificateAndItsKeyAreTaken) {
  const auto identity = Read(one_ + ".pem", one_ + ".key");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_THAT((*identity)->key, HasSubstr("PRIVATE KEY"));
}

TEST_F(ShardTlsTest, TheKeyOfAnotherCertificateIsRefusedByName) {
  EXPECT_THAT(Said(one_ + ".pem", two_ + ".key"),
              HasSubstr("`shard-tls-key` must be the key of the certificate " + one_ +
                        ".pem. Given: " + two_ + ".key"));
}

TEST_F(ShardTlsTest, FilesOfAnotherKindAreRefusedByName) {
  EXPECT_THAT(Said(one_ + ".key", one_ + ".key"), HasSubstr("shard-tls-cert"));
  EXPECT_THAT(Said(one_ + ".pem", one_ + ".pem"), HasSubstr("a PEM private key"));
  std::ofstream(one_ + ".key") << "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
  EXPECT_THAT(Said(one_ + ".pem", one_ + ".key"), HasSubstr("a PEM private key"));
}

}  // namespace
}  // namespace penstock::options
