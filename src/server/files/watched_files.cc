#include "server/files/watched_files.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

// The worker has it alone until the loop is told.
struct WatchedFiles::Look {
  uv_work_t request{};
  WatchedFiles* owner = nullptr;
  std::vector<std::string> files;
  std::vector<uint64_t> before;
  Read read;
  bool asked = false;

  std::vector<uint64_t> fingerprints;
  std::vector<PathEntry> entries;
  bool unsettled = false;
  Deliver deliver;  // Empty: nothing has changed.
};

WatchedFiles::WatchedFiles(std::vector<std::string> files, Read read,
                           const WatchedFilesOptions& options)
    : files_(std::move(files)), read_(std::move(read)), options_(options) {}

WatchedFiles::~WatchedFiles() { NOWCALLS_CHECK(loop_ == nullptr || (stopped_ && !looking_)); }

void WatchedFiles::Start(uv_loop_t* loop) {
  constexpr size_t kWatchesMax = 64;
  loop_ = loop;
  timer_.data = this;
  NOWCALLS_CHECK(uv_timer_init(loop, &timer_) == 0);
  watches_ = std::make_unique<DirectoryWatches>(
      loop, kWatchesMax,
      [this](const std::string& directory, const std::string& name) { OnChange(directory, name); });
  Begin();
}

void WatchedFiles::ReadNow() {
  asked_ = true;
  Begin();
}

void WatchedFiles::Stop() {
  if (loop_ == nullptr || std::exchange(stopped_, true)) return;
  watches_->Close();
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
}

void WatchedFiles::OnChange(const std::string& directory, const std::string& name) {
  const std::string own = directory.substr(directory.rfind('/') + 1);
  const bool concerned = std::any_of(entries_.begin(), entries_.end(), [&](const PathEntry& entry) {
    // An empty name is any entry; the directory's own: it was removed or replaced.
    return entry.directory == directory && (name.empty() || name == entry.name || name == own);
  });
  if (concerned) Settle();
}

// Each change puts the look off: a certificate and its key are written one after the other.
void WatchedFiles::Settle() {
  changed_ = true;
  const uint64_t now_ms = uv_now(loop_);
  if (!first_change_ms_.has_value()) first_change_ms_ = now_ms;
  const uint64_t latest_ms = *first_change_ms_ + options_.settle_ms_max;
  LookIn(std::min(options_.settle_ms, latest_ms > now_ms ? latest_ms - now_ms : 0));
}

void WatchedFiles::LookIn(uint64_t ms) {
  NOWCALLS_CHECK(uv_timer_start(
                     &timer_,
                     [](uv_timer_t* timer) { static_cast<WatchedFiles*>(timer->data)->Begin(); },
                     ms, 0) == 0);
}

void WatchedFiles::Begin() {
  if (looking_ || stopped_ || loop_ == nullptr) return;  // OnLooked goes on with what is due then.
  first_change_ms_.reset();
  changed_ = false;
  auto look = std::make_unique<Look>();
  look->owner = this;
  look->files = files_;
  look->before = fingerprints_;
  look->read = read_;
  look->asked = std::exchange(asked_, false);
  look->request.data = look.get();
  looking_ = true;
  NOWCALLS_CHECK(uv_queue_work(
                     loop_, &look.release()->request,
                     [](uv_work_t* request) { Work(static_cast<Look*>(request->data)); },
                     [](uv_work_t* request, int /*status*/) {
                       const std::unique_ptr<Look> done(static_cast<Look*>(request->data));
                       done->owner->OnLooked(*done);
                     }) == 0);
}

// Thread: a worker of libuv, which touches the look alone.
void WatchedFiles::Work(Look* look) {
  for (const std::string& file : look->files) {
    FileLook found = LookAtFile(file, std::nullopt);
    explicit_bzero(found.text.data(), found.text.size());  // It may be a key.
    look->unsettled = look->unsettled || found.outcome == FileLook::Outcome::kUnsettled;
    look->fingerprints.push_back(found.outcome == FileLook::Outcome::kRead ? found.fingerprint : 0);
    look->entries.insert(look->entries.end(), found.entries.begin(), found.entries.end());
  }
  if (look->unsettled && !look->asked) return;
  if (look->asked) {
    look->deliver = look->read(Why::kAsked);
  } else if (look->before.empty()) {
    look->deliver = look->read(Why::kFirst);
  } else if (look->before != look->fingerprints) {
    look->deliver = look->read(Why::kChanged);
  }
}

void WatchedFiles::OnLooked(const Look& look) {
  looking_ = false;
  if (stopped_) return;
  entries_ = look.entries;
  if (!look.unsettled || look.asked) fingerprints_ = look.fingerprints;
  if (look.deliver) look.deliver();
  const bool all_watched = Watch();
  if (asked_) return Begin();
  if (look.unsettled || changed_) return Settle();
  // Also with watches: inotify knows nothing of changes that another machine makes in a network
  // file system.
  LookIn(all_watched ? options_.idle_look_ms : options_.poll_ms);
}

// False: a directory is not watched.
bool WatchedFiles::Watch() {
  std::map<std::string, DirectoryWatches::Identity> directories;
  for (const PathEntry& entry : entries_) {
    directories[entry.directory] = {entry.device, entry.inode};
  }
  const DirectoryWatches::Changes changes = watches_->Watch(directories);
  // Neither the look nor the watch has seen a change between the two.
  changed_ = changed_ || !changes.added.empty();
  return changes.failed.empty();
}

}  // namespace nowcalls::server
