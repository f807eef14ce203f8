#include "router/main/access_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/support/temp_folder.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class AccessFilesTest : public ::testing::Test {
 protected:
  static options::Values RouterValues(std::vector<std::string> arguments) {
    options::Sources sources;
    sources.arguments = std::move(arguments);
    sources.arguments.insert(sources.arguments.begin(), "--model-id=m");
    auto values = Parse(options::ProgramFor(options::kRouter), sources);
    EXPECT_TRUE(values.ok()) << values.status();
    return *std::move(values);
  }

  // A new certificate, signed by itself.
  void WritePair() const {
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 40L * 86400);
    X509_set_pubkey(certificate.get(), key.get());
    ASSERT_GT(X509_sign(certificate.get(), key.get(), EVP_sha256()), 0);
    using File = std::unique_ptr<FILE, int (*)(FILE*)>;
    const File pem(std::fopen(certificate_.c_str(), "w"), std::fclose);
    ASSERT_EQ(PEM_write_X509(pem.get(), certificate.get()), 1);
    const File secret(std::fopen(key_.c_str(), "w"), std::fclose);
    ASSERT_EQ(PEM_write_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr),
              1);
    ::chmod(key_.c_str(), 0600);
  }

  void WriteKeys(std::string_view text) const {
    folder_.Write("keys", text);
    ::chmod(keys_.c_str(), 0600);
  }

  // What a reading logs.
  static std::string LogOf(AccessFiles& files) {
    ::testing::internal::CaptureStderr();
    files.ReadAgain();
    return ::testing::internal::GetCapturedStderr();
  }

  bool Counted(const std::string& file, const std::string& outcome, int count) {
    return metrics_.Render().find("penstock_reloads_total{file=\"" + file + "\",outcome=\"" +
                                  outcome + "\"} " + std::to_string(count) + "\n") !=
           std::string::npos;
  }

  const TempFolder folder_;
  const std::string certificate_ = folder_ / "server.pem";
  const std::string key_ = folder_ / "server.key";
  const std::string keys_ = folder_ / "keys";
  Metrics metrics_;
};

TEST_F(AccessFilesTest, LogOnlyWhatHasChanged) {
  WritePair();
  WriteKeys("alice:first\n");
  const options::Values values =
      RouterValues({"--tls-cert=" + certificate_, "--tls-key=" + key_, "--api-keys-file=" + keys_});
  AccessFiles files(values, metrics_);
  ASSERT_TRUE(files.Load().ok());
  EXPECT_THAT(LogOf(files), HasSubstr("files of keys and certificates have not changed"));

  WriteKeys("bob:second\n");
  const std::string keys = LogOf(files);
  EXPECT_THAT(keys, HasSubstr("1 API key read from " + keys_));
  EXPECT_THAT(keys, Not(HasSubstr("certificate")));
  EXPECT_EQ(files.keys()->Get()->NameOf("second"), "bob");

  WritePair();
  const std::string certificate = LogOf(files);
  EXPECT_THAT(certificate, HasSubstr("new connections get the certificate of " + certificate_));
  EXPECT_THAT(certificate, Not(HasSubstr("API key")));
  EXPECT_TRUE(Counted("api_keys", "done", 3));
  EXPECT_TRUE(Counted("certificate", "done", 3));
}

TEST_F(AccessFilesTest, AnInvalidFileChangesNothingAndIsCounted) {
  WriteKeys("alice:first\n");
  const options::Values values = RouterValues({"--api-keys-file=" + keys_});
  AccessFiles files(values, metrics_);
  ASSERT_TRUE(files.Load().ok());
  WriteKeys("nonsense\n");
  EXPECT_THAT(LogOf(files), HasSubstr("the API keys stay as they were: --api-keys-file "));
  EXPECT_EQ(files.keys()->Get()->NameOf("first"), "alice");
  EXPECT_TRUE(Counted("api_keys", "failed", 1));
  EXPECT_TRUE(Counted("certificate", "done", 0)) << "there is none to read";
}

TEST_F(AccessFilesTest, APrivateKeyThatOthersMayReadIsAWarning) {
  WritePair();
  const options::Values values = RouterValues({"--tls-cert=" + certificate_, "--tls-key=" + key_});
  AccessFiles files(values, metrics_);
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(files.Load().ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), IsEmpty());
  ::chmod(key_.c_str(), 0644);
  EXPECT_THAT(LogOf(files), HasSubstr("--tls-key " + key_ +
                                      ": users other than its owner may "
                                      "read it (mode 0644; set it to 0600)"));
}

TEST_F(AccessFilesTest, TheEndOfTheCertificateIsOnTheMetricsPage) {
  WritePair();
  const options::Values values = RouterValues({"--tls-cert=" + certificate_, "--tls-key=" + key_});
  ASSERT_TRUE(AccessFiles(values, metrics_).Load().ok());
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("\npenstock_tls_certificate_expiry_timestamp_seconds 1"));
}

}  // namespace
}  // namespace penstock::router
