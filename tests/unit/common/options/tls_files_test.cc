// The files of --shard-tls-* and --tls-* are checked before a connection needs them.
#include "common/options/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/options/table.h"
#include "tests/unit/support/temp_folder.h"

namespace penstock::options {
namespace {

using ::testing::HasSubstr;

// Writes NAME.pem, signed by itself, and NAME.key.
void MakePair(const std::string& name, long begins = 0, long seconds = 40L * 86400) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), begins);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
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

class TlsFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakePair(one_);
    MakePair(two_);
  }

  static absl::StatusOr<Values> RouterValues(std::vector<std::string> arguments) {
    Sources sources;
    sources.arguments = std::move(arguments);
    sources.arguments.insert(sources.arguments.begin(), "--model-id=m");
    sources.environment = [](const std::string&) -> const char* { return nullptr; };
    return Parse(ProgramAs(kRouter, "penstock-router"), sources);
  }

  static TlsFiles Read(const std::string& certificate, const std::string& key) {
    const auto values = RouterValues({"--shard-tls-cert=" + certificate, "--shard-tls-key=" + key,
                                      "--shard-tls-ca=" + certificate});
    if (!values.ok()) return values.status();
    return ReadShardTls(*values);
  }

  static TlsFiles ReadHttp(std::vector<std::string> arguments) {
    const auto values = RouterValues(std::move(arguments));
    if (!values.ok()) return values.status();
    return ReadHttpTls(*values);
  }

  static std::string Warning(const std::string& name) {
    std::ifstream file(name + ".pem");
    return CertificateWarning({std::istreambuf_iterator<char>(file), {}});
  }

  static std::string Said(const std::string& certificate, const std::string& key) {
    return std::string(Read(certificate, key).status().message());
  }

  const TempFolder folder_;
  const std::string one_ = folder_ / "one";
  const std::string two_ = folder_ / "two";
};

TEST_F(TlsFilesTest, AcceptsACertificateAndItsKey) {
  const auto identity = Read(one_ + ".pem", one_ + ".key");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_THAT((*identity)->key, HasSubstr("PRIVATE KEY"));
}

TEST_F(TlsFilesTest, TheKeyOfAnotherCertificateIsRefusedByName) {
  EXPECT_THAT(Said(one_ + ".pem", two_ + ".key"),
              HasSubstr("--shard-tls-key " + two_ + ".key: must be the key of the certificate " +
                        one_ + ".pem"));
}

TEST_F(TlsFilesTest, AMissingPartOfAnIdentityIsNamed) {
  const auto read = ReadHttp({"--tls-cert=" + one_ + ".pem"});
  EXPECT_EQ(std::string(read.status().message()),
            "--tls-key: must be given: --tls-cert and --tls-key belong together, and "
            "--tls-client-ca needs both");
}

TEST_F(TlsFilesTest, FilesOfAnotherKindAreRefusedByName) {
  EXPECT_THAT(Said(one_ + ".key", one_ + ".key"), HasSubstr("shard-tls-cert"));
  EXPECT_THAT(Said(one_ + ".pem", one_ + ".pem"), HasSubstr("a PEM private key"));
  std::ofstream(one_ + ".key") << "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
  EXPECT_THAT(Said(one_ + ".pem", one_ + ".key"), HasSubstr("a PEM private key"));
}

// Part of a chain or of the authorities would be missing, and clients would fail.
TEST_F(TlsFilesTest, IncompleteCertificatesAfterAWholeOneAreRefused) {
  std::ifstream whole(two_ + ".pem");
  const std::string text(std::istreambuf_iterator<char>(whole), {});
  std::ofstream(one_ + ".pem", std::ios::app) << text;
  EXPECT_TRUE(Read(one_ + ".pem", one_ + ".key").ok());
  std::ofstream(one_ + ".pem", std::ios::app) << text.substr(0, 100);
  EXPECT_THAT(Said(one_ + ".pem", one_ + ".key"),
              HasSubstr("one or more complete PEM certificates"));
  const auto authority = ReadHttp({"--tls-cert=" + two_ + ".pem", "--tls-key=" + two_ + ".key",
                                   "--tls-client-ca=" + one_ + ".pem"});
  EXPECT_THAT(std::string(authority.status().message()), HasSubstr("--tls-client-ca "));
}

TEST_F(TlsFilesTest, TheListenerNeedsNoAuthority) {
  EXPECT_EQ(*ReadHttp({}), nullptr);
  const auto identity = ReadHttp({"--tls-cert=" + one_ + ".pem", "--tls-key=" + one_ + ".key"});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ((*identity)->authority, "");
  const auto alone = ReadHttp({"--tls-client-ca=" + one_ + ".pem"}).status();
  EXPECT_THAT(std::string(alone.message()), HasSubstr("--tls-client-ca needs both"));
  const auto gone = ReadHttp({"--tls-cert=/missing.pem", "--tls-key=" + one_ + ".key"}).status();
  EXPECT_THAT(std::string(gone.message()), HasSubstr("(No such file or directory)"));
}

TEST_F(TlsFilesTest, KnowsWhenACertificateEnds) {
  MakePair(one_, 0, 3600);
  std::ifstream file(one_ + ".pem");
  const auto end = CertificateEnd({std::istreambuf_iterator<char>(file), {}});
  ASSERT_TRUE(end.has_value());
  EXPECT_NEAR(static_cast<double>(*end), static_cast<double>(std::time(nullptr) + 3600), 60);
  EXPECT_EQ(CertificateEnd("no certificate"), std::nullopt);
}

TEST_F(TlsFilesTest, WarnsOfACertificateThatIsExpiredOrExpiresSoon) {
  EXPECT_EQ(Warning(one_), "");
  MakePair(one_, 0, 3 * 86400 + 60);
  EXPECT_EQ(Warning(one_), "the certificate expires in 3 days");
  MakePair(one_, -7200, -3600);
  EXPECT_EQ(Warning(one_), "the certificate has expired");
  MakePair(one_, 3600, 7200);
  EXPECT_EQ(Warning(one_), "the certificate is not valid yet");
}

}  // namespace
}  // namespace penstock::options
