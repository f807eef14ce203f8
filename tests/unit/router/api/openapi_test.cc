#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <cctype>
#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/api/docs/openapi.h"

namespace penstock::router {
namespace {

using Operations = std::set<std::pair<std::string, std::string>>;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// A client generated from the document calls what is written there.
TEST(OpenApiTest, TheDocumentHasExactlyTheRoutesOfEachProfile) {
  for (const bool tgi_only : {false, true}) {
    const DialectSet dialects = MakeDialects({.tgi_only = tgi_only});
    Operations served;
    for (const auto& [route, dialect] : dialects.served()) {
      std::string path(route->pattern);
      if (path == "/models/{id}") path = "/models/{model}/invoke";
      if (path == "/console/{id}") path = "/console/{file}";
      if (path == "/predictions/{id}") path = "/predictions/{model}";
      served.emplace(path, Lower(route->method));
    }
    Operations documented;
    const auto document = boost::json::parse(docs::OpenApi(dialects, "1.0"));
    for (const auto& [path, operations] : document.at("paths").as_object()) {
      for (const auto& [method, operation] : operations.as_object()) {
        EXPECT_TRUE(documented.emplace(path, method).second) << method << " " << path;
        const bool has_id = std::string_view(path).find('{') != std::string_view::npos;
        EXPECT_EQ(operation.as_object().contains("parameters"), has_id) << path;
      }
    }
    EXPECT_EQ(documented, served);
  }
}

}  // namespace
}  // namespace penstock::router
