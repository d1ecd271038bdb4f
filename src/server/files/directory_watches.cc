#include "server/files/directory_watches.h"

#include <iterator>

#include "base/check.h"

namespace nowcalls::server {

struct DirectoryWatches::Entry {
  uv_fs_event_t handle{};
  DirectoryWatches* owner = nullptr;  // Null once it is being closed.
  std::string directory;
  Identity identity;
};

DirectoryWatches::DirectoryWatches(uv_loop_t* loop, size_t watches_max, OnChange on_change)
    : loop_(loop), watches_max_(watches_max), on_change_(std::move(on_change)) {}

DirectoryWatches::~DirectoryWatches() { NOWCALLS_CHECK(watches_.empty()); }

DirectoryWatches::Changes DirectoryWatches::Watch(
    const std::map<std::string, Identity>& directories) {
  // 1. Drop watches that are not wanted. Another identity under a path: the directory was replaced,
  //    and the old watch is dead.
  for (auto it = watches_.begin(); it != watches_.end();) {
    const auto wanted = directories.find(it->first);
    const bool keep = wanted != directories.end() && wanted->second == it->second->identity;
    if (!keep) Remove(it->second);
    it = keep ? std::next(it) : watches_.erase(it);
  }
  // 2. Add what is missing. Failures are the owner's, which looks from time to time instead.
  Changes changes;
  for (const auto& [directory, identity] : directories) {
    if (watches_.contains(directory)) continue;
    const std::string problem = Add(directory, identity);
    if (problem.empty()) {
      changes.added.insert(directory);
    } else {
      changes.failed.emplace(directory, problem);
    }
  }
  return changes;
}

std::string DirectoryWatches::Add(const std::string& directory, const Identity& identity) {
  if (watches_.size() >= watches_max_) {
    return "at most " + std::to_string(watches_max_) + " directories are watched";
  }
  auto* entry = new Entry();
  NOWCALLS_CHECK(uv_fs_event_init(loop_, &entry->handle) == 0);
  entry->handle.data = entry;
  entry->owner = this;
  entry->directory = directory;
  entry->identity = identity;
  const int error = uv_fs_event_start(
      &entry->handle,
      [](uv_fs_event_t* handle, const char* name, int /*events*/, int /*status*/) {
        const auto* changed = static_cast<Entry*>(handle->data);
        // An event from before the close of the handle.
        if (changed->owner == nullptr) return;
        // Copied: the callback may remove the entry.
        const std::string where = changed->directory;
        changed->owner->on_change_(where, name == nullptr ? "" : name);
      },
      directory.c_str(), 0);
  if (error != 0) {
    Remove(entry);
    return uv_strerror(error);
  }
  watches_.emplace(directory, entry);
  return "";
}

void DirectoryWatches::Remove(Entry* entry) {
  entry->owner = nullptr;
  uv_close(reinterpret_cast<uv_handle_t*>(&entry->handle),
           [](uv_handle_t* handle) { delete static_cast<Entry*>(handle->data); });
}

void DirectoryWatches::Close() {
  for (const auto& [directory, entry] : watches_) Remove(entry);
  watches_.clear();
}

}  // namespace nowcalls::server
