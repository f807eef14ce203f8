// The seam of dialects: what a dialect decides, with one that exists only here.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "router/api/api.h"
#include "router/api/context.h"
#include "router/api/dialect_set.h"
#include "tests/unit/router/support/fake_engine.h"

namespace penstock::router {
namespace {

class TestErrors final : public ErrorFormat {
 public:
  explicit TestErrors(std::string name) : name_(std::move(name)) {}
  int Status(ApiErrorKind kind) const override {
    return kind == ApiErrorKind::kUnauthorized ? 401 : 499;
  }
  std::string Body(const ApiError& error) const override { return name_ + ": " + error.message; }
  std::string_view Schema() const override { return "TestError"; }

 private:
  std::string name_;
};

// Its key is in `x-key`.
class TestDialect final : public Dialect {
 public:
  TestDialect(const std::string& name, std::vector<Route> routes)
      : Dialect(std::move(routes)), errors_(name), prefix_("/" + name) {}
  const ErrorFormat& Errors() const override { return errors_; }
  std::optional<std::string_view> KeyIn(const RequestHead& head) const override {
    return head.Find("x-key");
  }
  std::string_view KeyAdvice() const override { return "use x-key"; }
  bool Owns(std::string_view path) const override { return path.starts_with(prefix_); }

 private:
  TestErrors errors_;
  std::string prefix_;
};

DialectSet TwoDialects() {
  const auto handler = [](ApiContext&, const HttpRequest&, const std::shared_ptr<Exchange>&) {};
  std::vector<std::unique_ptr<const Dialect>> dialects;
  dialects.push_back(std::make_unique<TestDialect>(
      "a", std::vector<Route>{{.method = "GET", .pattern = "/a", .handler = handler},
                              {.method = "GET", .pattern = "/shared", .handler = handler}}));
  dialects.push_back(std::make_unique<TestDialect>(
      "b", std::vector<Route>{{.method = "GET", .pattern = "/shared", .handler = handler},
                              {.method = "DELETE", .pattern = "/a", .handler = handler}}));
  const Dialect& fallback = *dialects[1];
  return {std::move(dialects), fallback};
}

class DialectTest : public ::testing::Test {
 protected:
  RouteMatch Match(const std::string& method, const std::string& path, const std::string& key) {
    RequestHead head;
    head.method = method;
    head.path = path;
    head.headers.push_back({"x-key", key});
    return api_.Match(head);
  }

  static ApiOptions WithKey() {
    ApiOptions options;
    options.keys = std::make_shared<KeyRing>(ApiKeys::Parse("open").value());
    return options;
  }

  testing::FakeEngine engine_;
  Metrics metrics_;
  ApiContext context_{WithKey(), TwoDialects(), engine_, metrics_};
  Api api_{context_};
};

TEST_F(DialectTest, TheFirstDialectServesASharedRoute) {
  const DialectSet set = TwoDialects();
  ASSERT_EQ(set.served().size(), 3U);
  EXPECT_EQ(set.served()[1].route->pattern, "/shared");
  EXPECT_EQ(set.served()[1].dialect, set.dialects()[0].get());
}

TEST_F(DialectTest, TheMatchedDialectReadsTheKeyAndRefuses) {
  EXPECT_FALSE(Match("GET", "/a", "open").refusal);
  EXPECT_EQ(Match("GET", "/a", "open").tenant, "default");
  EXPECT_EQ(Match("GET", "/a", "wrong").refusal->body,
            "a: the API key is wrong: use x-key; the operator set it with --api-key or "
            "--api-keys-file");
  EXPECT_EQ(Match("DELETE", "/a", "").refusal->body,
            "b: an API key is missing: use x-key; the operator set it with --api-key or "
            "--api-keys-file");
}

TEST_F(DialectTest, APathWithoutARouteIsRefusedByItsOwnerOrTheFallback) {
  EXPECT_EQ(Match("GET", "/a/x", "").refusal->body, "a: no such route: GET /a/x");
  EXPECT_EQ(Match("GET", "/x", "").refusal->body, "b: no such route: GET /x");
}

}  // namespace
}  // namespace penstock::router
