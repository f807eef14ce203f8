#include "router/dispatch/adapter_service.h"

#include <algorithm>
#include <utility>

#include "common/human_bytes.h"
#include "common/log.h"
#include "common/status.h"

namespace penstock::router {
namespace {

constexpr std::size_t kMostWaiting = 64;
constexpr std::chrono::minutes kCallTimeout{10};  // to read a large file from a slow disk

ShardClient::Deadline Soon() { return std::chrono::system_clock::now() + kCallTimeout; }

std::string IdOf(const std::string& name, std::uint64_t load) {
  return load == 0 ? name : name + "#" + std::to_string(load + 1);
}

}  // namespace

class AdapterService::Group {
 public:
  Group(const GroupLink& link, const std::stop_token& stop)
      : epoch_(link.formed().epoch), tls_(link.options().tls) {
    for (std::size_t rank = 0; rank < link.options().sockets.size(); ++rank) {
      ranks_.push_back(std::make_unique<ShardClient>(
          link.options().sockets[rank], static_cast<std::uint32_t>(rank), stop, tls_.get()));
    }
  }

  Epoch epoch() const { return epoch_; }

  // Adds the bytes of all ranks. After an error no rank has it.
  absl::Status Load(const std::string& id, const std::string& folder, AdapterInfo& info) {
    for (const auto& rank : ranks_) {
      auto loaded = rank->LoadAdapter(id, folder, Soon());
      if (!loaded.ok()) {
        Unload(id);
        return loaded.status();
      }
      info.rank = loaded->rank;
      info.bytes += loaded->bytes;
    }
    return absl::OkStatus();
  }

  void Unload(const std::string& id) {
    for (const auto& rank : ranks_) {
      const absl::Status status = rank->UnloadAdapter(id, Soon());
      if (!status.ok()) log::Warn("adapter " + id + ": " + Message(status));
    }
  }

 private:
  const Epoch epoch_;
  const std::shared_ptr<const TlsIdentity> tls_;
  std::vector<std::unique_ptr<ShardClient>> ranks_;
};

AdapterService::AdapterService(AfterPlans after_plans)
    : after_plans_(std::move(after_plans)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

AdapterService::~AdapterService() { Stop(); }

void AdapterService::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    work_.clear();
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void AdapterService::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (news_.wait(lock, stop, [this] { return !work_.empty(); })) {
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

bool AdapterService::Post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || work_.size() >= kMostWaiting) return false;
    work_.push_back(std::move(work));
  }
  news_.notify_one();
  return true;
}

void AdapterService::Up(const GroupLink& link) {
  const std::lock_guard calls(groups_mutex_);
  auto group = std::make_unique<Group>(link, thread_.get_stop_token());
  std::map<std::string, ShardAdapter> has;
  for (const ShardAdapter& adapter : link.formed().facts.adapters) has[adapter.id] = adapter;
  if (!std::exchange(adopted_, true)) {
    const auto ranks = link.options().sockets.size();
    const std::lock_guard lock(mutex_);
    for (const auto& [id, adapter] : has) {
      loads_[id] = 1;
      entries_[id] = {{id, adapter.folder, adapter.rank, adapter.bytes * ranks}, id, nullptr};
    }
  }
  std::map<std::string, std::string> wanted;  // folders by id
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, entry] : entries_) wanted[entry.id] = entry.info.folder;
  }
  for (const auto& [id, adapter] : has) {
    if (!wanted.contains(id)) group->Unload(id);
  }
  for (const auto& [id, folder] : wanted) {
    if (has.contains(id)) continue;
    AdapterInfo info;
    const absl::Status loaded = group->Load(id, folder, info);
    if (loaded.ok()) continue;
    log::Error("adapter " + id + " is dropped: " + Message(loaded));
    const std::lock_guard lock(mutex_);
    if (Entry* entry = FindId(id)) entry->info.unloading = true;
  }
  groups_[link.formed().group] = std::move(group);
}

// On the core's thread, which must not wait for a call of the group's shards.
void AdapterService::Down(GroupId group, Epoch epoch) {
  Post([this, group, epoch] {
    const std::lock_guard calls(groups_mutex_);
    const auto found = groups_.find(group);
    if (found != groups_.end() && found->second->epoch() == epoch) groups_.erase(found);
  });
}

AdapterService::Entry* AdapterService::FindId(const std::string& id) {
  const auto found =
      std::ranges::find_if(entries_, [&id](const auto& e) { return e.second.id == id; });
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<AdapterInfo> AdapterService::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<AdapterInfo> list;
  for (const auto& [name, entry] : entries_) list.push_back(entry.info);
  return list;
}

std::shared_ptr<const std::string> AdapterService::Use(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.info.unloading) return nullptr;
  ++found->second.info.requests;
  return {new std::string(found->second.id), [this](const std::string* id) {
            Release(*id);
            delete id;
          }};
}

void AdapterService::Release(const std::string& id) {
  bool unload = false;
  {
    const std::lock_guard lock(mutex_);
    Entry* entry = FindId(id);
    if (entry == nullptr) return;
    --entry->info.requests;
    unload = entry->info.requests == 0 && entry->unloaded != nullptr;
  }
  if (unload) UnloadWhenReturned(id);
}

void AdapterService::Load(AdapterFolder adapter, Done done) {
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    if (entries_.contains(adapter.name)) {
      id.clear();
    } else {
      id = IdOf(adapter.name, loads_[adapter.name]++);
    }
  }
  if (id.empty()) {
    return done(absl::AlreadyExistsError("adapter " + adapter.name + " is loaded already"));
  }
  const bool posted = Post([this, adapter, id, done] { LoadNow(adapter, id, done); });
  if (!posted) done(absl::UnavailableError("too many adapters wait to be loaded"));
}

void AdapterService::LoadNow(const AdapterFolder& adapter, const std::string& id,
                             const Done& done) {
  auto info = LoadOnAll(adapter, id);
  if (!info.ok()) return done(info.status());
  {
    const std::lock_guard lock(mutex_);
    if (!entries_.contains(adapter.name)) {
      entries_[adapter.name] = {*info, id, nullptr};
    } else {
      info = absl::AlreadyExistsError("adapter " + adapter.name + " is loaded already");
    }
  }
  if (!info.ok()) {
    UnloadNow(id);
    return done(info.status());
  }
  log::Info("adapter " + adapter.name + " loaded: rank " + std::to_string(info->rank) + ", " +
            HumanBytes(info->bytes));
  done(absl::OkStatus());
}

absl::StatusOr<AdapterInfo> AdapterService::LoadOnAll(const AdapterFolder& adapter,
                                                      const std::string& id) {
  const std::lock_guard calls(groups_mutex_);
  if (groups_.empty()) return absl::UnavailableError("no replica group is up");
  AdapterInfo info;
  std::vector<Group*> loaded;
  for (const auto& [number, group] : groups_) {
    info = {adapter.name, adapter.folder};
    const absl::Status status = group->Load(id, adapter.folder, info);
    if (!status.ok()) {
      for (Group* other : loaded) other->Unload(id);
      return status;
    }
    loaded.push_back(group.get());
  }
  return info;
}

void AdapterService::Unload(const std::string& name, Done done) {
  std::string id;
  bool idle = false;
  bool twice = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found != entries_.end()) {
      Entry& entry = found->second;
      twice = entry.unloaded != nullptr;
      id = entry.id;
      idle = entry.info.requests == 0;
      entry.info.unloading = true;
      if (!twice) entry.unloaded = done;
    }
  }
  if (id.empty()) return done(absl::NotFoundError("adapter " + name + " is not loaded"));
  if (twice) return done(absl::AlreadyExistsError("adapter " + name + " is being unloaded"));
  if (idle) UnloadWhenReturned(id);
}

// A plan in flight may still start a request that has ended since.
void AdapterService::UnloadWhenReturned(const std::string& id) {
  after_plans_([this, id] { Post([this, id] { UnloadNow(id); }); });
}

void AdapterService::UnloadNow(const std::string& id) {
  {
    const std::lock_guard calls(groups_mutex_);
    for (const auto& [number, group] : groups_) group->Unload(id);
  }
  Done done;
  {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::ranges::find_if(entries_, [&id](const auto& e) { return e.second.id == id; });
    if (found == entries_.end()) return;
    done = std::move(found->second.unloaded);
    entries_.erase(found);
  }
  log::Info("adapter " + id + " unloaded");
  if (done) done(absl::OkStatus());
}

}  // namespace penstock::router
