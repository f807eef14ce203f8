#include "router/api/responses/store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace penstock::router::responses {
namespace {

StoredResponse Response(const std::string& id, std::size_t size = 0) {
  return {id, std::make_shared<const std::string>("[]"), std::string(size, 'x'), nullptr};
}

TEST(ResponseStoreTest, ATenantFindsAndRemovesItsOwn) {
  Store store({});
  store.Add("alice", Response("a"));
  ASSERT_NE(store.Find("alice", "a"), nullptr);
  EXPECT_EQ(store.Find("bob", "a"), nullptr);
  EXPECT_FALSE(store.Remove("bob", "a"));
  EXPECT_TRUE(store.Remove("alice", "a"));
  EXPECT_EQ(store.Find("alice", "a"), nullptr);
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_EQ(store.entries(), 0u);
}

TEST(ResponseStoreTest, TheOldestLeaves) {
  Store store({.entries = 2});
  for (const char* id : {"a", "b", "c"}) store.Add("", Response(id));
  EXPECT_EQ(store.Find("", "a"), nullptr);
  EXPECT_NE(store.Find("", "b"), nullptr);
  EXPECT_NE(store.Find("", "c"), nullptr);
  EXPECT_EQ(store.entries(), 2u);
}

TEST(ResponseStoreTest, ItHoldsNoMoreBytesThanItMay) {
  Store store({.entries = 100, .bytes = 10000});
  for (int i = 0; i < 50; ++i) {
    store.Add("", Response(std::to_string(i), 1000));
    EXPECT_LE(store.bytes(), 10000u);
  }
  EXPECT_GE(store.entries(), 5u);
  EXPECT_NE(store.Find("", "49"), nullptr);
  store.Add("", Response("large", 20000));
  EXPECT_EQ(store.Find("", "large"), nullptr);
  EXPECT_NE(store.Find("", "49"), nullptr) << "what can never fit drives out nothing";
}

TEST(ResponseStoreTest, ATenantThatStoresMuchDrivesOutItsOwn) {
  Store store({.entries = 100, .bytes = 20000});
  store.Add("quiet", Response("old", 1000));
  for (int i = 0; i < 50; ++i) store.Add("busy", Response(std::to_string(i), 2000));
  EXPECT_NE(store.Find("quiet", "old"), nullptr);
}

TEST(ResponseStoreTest, AResponseThatEndsTakesThePlaceOfItsBeginning) {
  Store store({.entries = 100, .bytes = 10000});
  StoredResponse begun = Response("a", 10);
  begun.cancel = [] {};
  store.Add("", std::move(begun));
  store.Finish("", "a", "the end");
  const StoredPtr ended = store.Find("", "a");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->object, "the end");
  EXPECT_EQ(ended->cancel, nullptr);
  store.Finish("", "unknown", "x");
  EXPECT_EQ(store.entries(), 1u);
  store.Finish("", "a", std::string(20000, 'x'));
  EXPECT_EQ(store.entries(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStoreTest, WithoutEntriesNothingIsStored) {
  Store store({.entries = 0});
  EXPECT_FALSE(store.enabled());
  store.Add("", Response("a"));
  EXPECT_EQ(store.entries(), 0u);
}

}  // namespace
}  // namespace penstock::router::responses
