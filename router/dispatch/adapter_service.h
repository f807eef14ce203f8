// The LoRA adapters of all groups: loads and unloads them on the shards, and knows which requests
// use them.
//
// The shards know an adapter by an id. It is the name for the first adapter of that name, and has a
// number for later ones, so that the prefix cache never confuses two of them. An adapter is
// unloaded once no request holds its id and the plans that were in flight then have returned.
//
// One thread calls the shards. Its queue is bounded; a call that does not fit is refused. A group
// that is formed again gets the present adapters before it serves.
//
// Thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/adapter_name.h"
#include "common/ids.h"
#include "router/adapter_info.h"
#include "router/dispatch/group_link.h"

namespace penstock::router {

class AdapterService final {
 public:
  using Done = std::function<void(absl::Status)>;
  // Calls its argument once all plans that are in flight now have returned.
  using AfterPlans = std::function<void(std::function<void()>)>;

  explicit AdapterService(AfterPlans after_plans);
  ~AdapterService();  // Stop
  AdapterService(const AdapterService&) = delete;
  AdapterService& operator=(const AdapterService&) = delete;

  // Loads the adapters into a group that is not attached to the core yet. The first group's own
  // adapters become those of the server. Blocks. No later request gets an adapter that could not be
  // loaded again.
  void Up(const GroupLink& link);
  void Down(GroupId group, Epoch epoch);

  std::vector<AdapterInfo> List() const;
  // The id of a loaded adapter, which is in use until it is released; null: there is none.
  std::shared_ptr<const std::string> Use(const std::string& name);

  void Load(AdapterFolder adapter, Done done);
  void Unload(const std::string& name, Done done);

  // Drops what waits.
  void Stop();

 private:
  struct Entry {
    AdapterInfo info;
    std::string id;
    Done unloaded;  // waits for the end of its requests
  };
  class Group;

  void Run(const std::stop_token& stop);
  bool Post(std::function<void()> work);
  void LoadNow(const AdapterFolder& adapter, const std::string& id, const Done& done);
  // On all ranks of all groups. The error of the first that fails; then none has it.
  absl::StatusOr<AdapterInfo> LoadOnAll(const AdapterFolder& adapter, const std::string& id);
  void Release(const std::string& id);
  void UnloadWhenReturned(const std::string& id);
  void UnloadNow(const std::string& id);
  // With mutex_ held.
  Entry* FindId(const std::string& id);

  const AfterPlans after_plans_;

  std::mutex groups_mutex_;  // held during calls of shards; taken before mutex_
  std::map<GroupId, std::unique_ptr<Group>> groups_;
  bool adopted_ = false;

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;        // by name
  std::map<std::string, std::uint64_t> loads_;  // by name: how many there were
  std::deque<std::function<void()>> work_;
  std::condition_variable_any news_;
  bool stopped_ = false;

  std::jthread thread_;  // last: it uses the others
};

}  // namespace penstock::router
