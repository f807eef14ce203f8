#include "tools/plan/machine_list.h"

#include <gtest/gtest.h>

#include <string>

#include "common/status.h"

namespace penstock::plan {
namespace {

std::string ErrorOf(const std::string& text) {
  return Message(ParseMachines(text, "m.yaml", "").status());
}

TEST(MachineList, ReadsNamedAndMeasuredTypes) {
  const auto types = ParseMachines(
      "h100: {model: h100, count: 8, per_host: 4, price: 2.9, watts: 700, weights: fp8}\n"
      "cpu:\n"
      "  tables: {1: one.warmup}\n"
      "  interconnect: {latency_us: 20, gb_per_second: 10}\n"
      "  kv_memory: 4\n",
      "m.yaml", "folder");
  ASSERT_TRUE(types.ok()) << types.status();
  ASSERT_EQ(types->size(), 2u);
  EXPECT_EQ((*types)[0].count, 8u);
  EXPECT_EQ((*types)[0].per_host, 4u);
  EXPECT_TRUE((*types)[0].fp8);
  EXPECT_EQ((*types)[1].tables.at(1), "folder/one.warmup");
  EXPECT_EQ((*types)[1].interconnect->latency, std::chrono::microseconds(20));
  EXPECT_EQ((*types)[1].kv_memory, 4e9);
}

TEST(MachineList, AnErrorNamesPlaceFieldValueAndLimit) {
  EXPECT_EQ(ErrorOf("h100:\n  model: h100\n  count: 0\n"),
            "m.yaml:3: h100.count must be a whole number from 1 to 4096. Given: 0");
  EXPECT_EQ(ErrorOf("h100:\n  model: h900\n"),
            "m.yaml:2: h100.model must be a100 or h100 or h200. Given: h900");
  EXPECT_EQ(ErrorOf("h100: {model: h100, price: much}"),
            "m.yaml:1: h100.price must be a number from 0 to 1000000. Given: much");
  EXPECT_EQ(ErrorOf("h100: {model: h100, cost: 3}").substr(0, 46),
            "m.yaml:1: h100.cost is unknown; a machine type");
}

TEST(MachineList, RefusesWhatCannotBePlanned) {
  EXPECT_EQ(ErrorOf("x: {count: 2}"), "m.yaml:1: x must have either `model` or `tables`");
  EXPECT_EQ(ErrorOf("x: {model: h100}\nx: {model: a100}"), "m.yaml:2: the list: x is given twice");
  EXPECT_EQ(ErrorOf("x: {model: a100, weights: fp8}"),
            "m.yaml:1: x.weights must be bf16 with model a100. Given: fp8");
  EXPECT_EQ(ErrorOf("- h100"), "m.yaml:1: the list must be a map from names to machine types");
  EXPECT_EQ(ErrorOf("x: [").substr(0, 18), "m.yaml:1: not YAML");
}

}  // namespace
}  // namespace penstock::plan
