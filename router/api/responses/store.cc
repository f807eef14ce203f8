#include "router/api/responses/store.h"

#include <algorithm>
#include <utility>

namespace penstock::router::responses {
namespace {

// Beside the texts: the entry, its places in list and map, and the id in the map.
constexpr std::size_t kOverhead = 512;

std::size_t SizeOf(const StoredResponse& response) {
  return response.input->size() + response.object.size() + kOverhead;
}

}  // namespace

void Store::Add(const std::string& tenant, StoredResponse response) {
  const std::size_t size = SizeOf(response);
  if (!enabled() || size > limits_.bytes) return;
  const std::lock_guard lock(mutex_);
  Tenant& owner = tenants_[tenant];
  std::string id = response.id;
  owner.order.push_back(std::make_shared<const StoredResponse>(std::move(response)));
  owner.by_id[std::move(id)] = std::prev(owner.order.end());
  owner.bytes += size;
  bytes_ += size;
  ++entries_;
  MakeRoom();
}

void Store::Finish(const std::string& tenant, const std::string& id, std::string object) {
  const std::lock_guard lock(mutex_);
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return;
  const auto found = owner->second.by_id.find(id);
  if (found == owner->second.by_id.end()) return;
  StoredPtr& entry = *found->second;
  const std::size_t before = SizeOf(*entry);
  entry = std::make_shared<const StoredResponse>(
      StoredResponse{id, entry->input, std::move(object), nullptr});
  const std::size_t after = SizeOf(*entry);
  owner->second.bytes += after - before;  // unsigned arithmetic wraps to the right sum
  bytes_ += after - before;
  if (after > limits_.bytes) return Drop(owner, found->second);
  MakeRoom();
}

StoredPtr Store::Find(const std::string& tenant, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return nullptr;
  const auto found = owner->second.by_id.find(id);
  return found == owner->second.by_id.end() ? nullptr : *found->second;
}

bool Store::Remove(const std::string& tenant, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return false;
  const auto found = owner->second.by_id.find(id);
  if (found == owner->second.by_id.end()) return false;
  Drop(owner, found->second);
  return true;
}

std::size_t Store::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::size_t Store::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void Store::Drop(std::map<std::string, Tenant>::iterator tenant,
                 std::list<StoredPtr>::iterator entry) {
  const std::size_t size = SizeOf(**entry);
  tenant->second.by_id.erase((*entry)->id);
  tenant->second.order.erase(entry);
  tenant->second.bytes -= size;
  bytes_ -= size;
  --entries_;
  if (tenant->second.order.empty()) tenants_.erase(tenant);
}

void Store::MakeRoom() {
  while (entries_ > limits_.entries || bytes_ > limits_.bytes) {
    const auto largest = std::ranges::max_element(
        tenants_, {}, [](const auto& named) { return named.second.bytes; });
    Drop(largest, largest->second.order.begin());
  }
}

}  // namespace penstock::router::responses
