// What TGI's router answered, replayed against ours where no tokenizer and no model is needed:
// everything that is refused, and the status of what is not. Optional data: skipped when absent.
#include <zlib.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using scheduler::FinishReason;
using testing::RawClient;
using testing::RawResponse;

std::filesystem::path DataFolder() {
  const char* given = std::getenv("PENSTOCK_SHARED_DATA");
  const std::filesystem::path data =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(PENSTOCK_SOURCE_DIR) / ".." / "shared" / "data";
  return data / "tgi_http";
}

std::vector<value> ReadExchanges(const std::filesystem::path& file) {
  std::vector<value> exchanges;
  gzFile in = gzopen(file.c_str(), "rb");
  if (in == nullptr) return exchanges;
  std::string line;
  std::vector<char> piece(1 << 16);
  while (gzgets(in, piece.data(), static_cast<int>(piece.size())) != nullptr) {
    line += piece.data();
    if (line.ends_with('\n')) {
      exchanges.push_back(boost::json::parse(line));
      line.clear();
    }
  }
  gzclose(in);
  return exchanges;
}

std::string Str(const value& v) { return boost::json::value_to<std::string>(v); }

std::string Field(const value& object, const char* name) {
  const value* found = object.as_object().if_contains(name);
  return found != nullptr && found->is_string() ? Str(*found) : "";
}

std::uint32_t Flag(const value& configuration, const char* name, std::uint32_t otherwise) {
  const value* found = configuration.at("flags").as_object().if_contains(name);
  return found != nullptr ? found->to_number<std::uint32_t>() : otherwise;
}

std::string RawRequest(const value& request) {
  const std::string body = Field(request, "body");
  std::string raw = Str(request.at("method")) + " " + Str(request.at("path")) + " HTTP/1.1\r\n";
  std::string names;
  for (const value& header : request.at("headers").as_array()) {
    raw += Str(header.at(0)) + ": " + Str(header.at(1)) + "\r\n";
    names += Str(header.at(0)) + " ";
  }
  if (names.find("host") == names.npos) raw += "Host: 127.0.0.1\r\n";
  if (names.find("connection") == names.npos) raw += "Connection: close\r\n";
  if (!body.empty() && names.find("content-length") == names.npos) {
    raw += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return raw + "\r\n" + body;
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// Exchanges that say nothing about this part: they need the tokenizer, the recorded shard, held
// permits, a body that is not text, or routes and features that are not ours yet.
bool IsElsewhere(const value& exchange) {
  const value& request = exchange.at("request");
  const std::string path = Str(request.at("path"));
  const std::string group = Str(exchange.at("group"));
  const std::string body = Field(request, "body");
  const std::string answer = Field(exchange.at("response"), "body_normalised");
  if (path != "/generate" && path != "/generate_stream" && path != "/") return true;
  if (exchange.as_object().contains("hold") || group.starts_with("shard_") || group == "cors") {
    return true;
  }
  if (request.as_object().contains("body_base64") || request.as_object().contains("http")) {
    return true;
  }
  if (!exchange.at("stable").as_bool()) return true;
  for (const char* part : {"`inputs` tokens +", "`inputs` must have less than", "[[fail"}) {
    if (Has(answer, part) || Has(body, part)) return true;
  }
  return Has(body, "grammar") || Has(body, "watermark") || Has(body, "adapter_id");
}

// Differences on purpose.
bool IsOurs(const value& exchange) {
  const std::string headers = boost::json::serialize(exchange.at("request").at("headers"));
  // A compressed body is refused rather than read as if it were plain.
  if (Has(headers, "content-encoding")) return true;
  // Keys are compared exactly.
  if (Has(headers, "bearer OPEN-SESAME") || Has(headers, "Bearer OPEN-SESAME")) return true;
  // Depth is bounded in keys that nobody reads, too.
  const std::string id = Str(exchange.at("id"));
  if (id.ends_with(".deepok") || id.ends_with(".deep2")) return true;
  // An empty stop string ends every generation at once; it is refused.
  return Has(Field(exchange.at("request"), "body"), "\"stop\": [\"\"]");
}

class RecordedTest : public ApiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void Configure(const value& configuration) {
    engine_.facts.max_input_tokens = Flag(configuration, "max-input-tokens", 1023);
    engine_.facts.max_total_tokens = Flag(configuration, "max-total-tokens", 2048);
    api_.max_best_of = Flag(configuration, "max-best-of", 2);
    api_.max_stop_sequences = Flag(configuration, "max-stop-sequences", 4);
    api_.max_top_n_tokens = Flag(configuration, "max-top-n-tokens", 5);
    http_.limits.body_bytes = Flag(configuration, "payload-limit", 2'000'000);
    const value* key = configuration.at("flags").as_object().if_contains("api-key");
    if (key != nullptr) api_.api_key = Str(*key);
    AnswerWith({"a"}, FinishReason::kLength);
  }

  void Compare(const value& exchange) {
    const value& expected = exchange.at("response");
    const std::string id = Str(exchange.at("id"));
    const RawResponse got = RawClient::Fetch(port_, RawRequest(exchange.at("request")));
    EXPECT_EQ(got.status, expected.at("status").to_number<int>()) << id << ": " << got.body;
    const std::string body = Field(expected, "body_normalised");
    // What TGI's framework leaves empty, ours says in one line.
    if (got.status == 401 || got.status == 404 || got.status == 405) return;
    if (got.status == 413) {
      EXPECT_TRUE(got.body.starts_with(body)) << id << ": " << got.body;
      return;
    }
    const bool error = got.status != 200 || body.starts_with("data: {\"error\"");
    if (error) {
      EXPECT_EQ(got.body, body) << id;
    }
    ++compared_[error ? "errors" : "statuses"];
  }

  std::map<std::string, int> compared_;
};

TEST_P(RecordedTest, RefusalsAreWordForWordTgis) {
  const std::filesystem::path folder = DataFolder();
  std::ifstream file(folder / "configurations.json");
  if (!file) GTEST_SKIP() << "no recorded exchanges in " << folder;
  std::stringstream text;
  text << file.rdbuf();
  const value configurations = boost::json::parse(text.str());
  value configuration;
  for (const value& candidate : configurations.as_array()) {
    if (candidate.at("name") == GetParam()) configuration = candidate;
  }
  ASSERT_TRUE(configuration.is_object());
  Configure(configuration);
  Start();
  for (const value& exchange : ReadExchanges(folder / "exchanges.jsonl.gz")) {
    if (exchange.at("config") != GetParam() || IsElsewhere(exchange) || IsOurs(exchange)) continue;
    Compare(exchange);
    if (HasFailure() && ++compared_["failed"] > 20) break;
  }
  EXPECT_GT(compared_["errors"] + compared_["statuses"], 20);
  RecordProperty("errors_compared", compared_["errors"]);
  RecordProperty("statuses_compared", compared_["statuses"]);
}

INSTANTIATE_TEST_SUITE_P(Configurations, RecordedTest, ::testing::Values("a", "b", "c", "d"));

}  // namespace
}  // namespace penstock::router
