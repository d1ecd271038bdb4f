// DirectoryWatches: tells when an entry of a directory changes (inotify, through libuv).
//
// Thread: loop. A directory that is removed or replaced calls back with its own name; Watch with
// the new identity replaces the dead watch.
#ifndef NOWCALLS_SERVER_FILES_DIRECTORY_WATCHES_H_
#define NOWCALLS_SERVER_FILES_DIRECTORY_WATCHES_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nowcalls::server {

class DirectoryWatches {
 public:
  // Device and inode.
  using Identity = std::pair<uint64_t, uint64_t>;
  // `name`: the entry that changed, or the directory's own last name; empty: any.
  using OnChange = std::function<void(const std::string& directory, const std::string& name)>;

  DirectoryWatches(uv_loop_t* loop, size_t watches_max, OnChange on_change);
  // REQUIRES: Close was called, and the loop ran since.
  ~DirectoryWatches();
  DirectoryWatches(const DirectoryWatches&) = delete;
  DirectoryWatches& operator=(const DirectoryWatches&) = delete;

  struct Changes {
    std::set<std::string> added;  // Watched only from now on: what happened before was not seen.
    std::map<std::string, std::string> failed;  // Directories that are not watched, and why.
  };
  // Watches these directories and no others. `failed`: no watch is left
  // (fs.inotify.max_user_watches or _instances), or the directory may not be read.
  Changes Watch(const std::map<std::string, Identity>& directories);

  void Close();
  size_t size() const { return watches_.size(); }

 private:
  struct Entry;

  std::string Add(const std::string& directory, const Identity& identity);
  static void Remove(Entry* entry);

  uv_loop_t* const loop_;
  const size_t watches_max_;
  const OnChange on_change_;
  std::map<std::string, Entry*> watches_;  // An entry frees itself once its handle is closed.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_DIRECTORY_WATCHES_H_
