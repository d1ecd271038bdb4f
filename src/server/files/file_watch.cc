#include "server/files/file_watch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

// One file in one look.
struct FileWatch::Item {
  std::string path;
  std::optional<FileSignature> known{};  // Not to be read with these stamps.
  FileLook before{};
  FileLook found{};

  bool unchanged() const { return found.outcome == FileLook::Outcome::kUnchanged; }
  bool unsettled() const { return found.outcome == FileLook::Outcome::kUnsettled; }
  bool changed() const {
    return !unchanged() &&
           (found.outcome != before.outcome || found.fingerprint != before.fingerprint ||
            found.signature != before.signature);
  }
};

struct FileWatch::Look {
  uv_work_t work{};
  FileWatch* owner = nullptr;
  const Read* read = nullptr;
  Due due = Due::kNo;
  std::vector<Item> items;

  bool unsettled = false;
  Take take;  // Empty: nothing was read.
};

FileWatch::FileWatch(std::vector<std::string> paths, Read read, Unwatched unwatched,
                     const FileWatchOptions& options)
    : read_(std::move(read)), unwatched_(std::move(unwatched)), options_(options) {
  for (std::string& path : paths) files_.push_back({.path = std::move(path)});
}

FileWatch::~FileWatch() { NOWCALLS_CHECK(loop_ == nullptr || (stopped_ && !looking_)); }

void FileWatch::Start(uv_loop_t* loop) {
  loop_ = loop;
  watches_.emplace(
      loop, options_.watches_max,
      [this](const std::string& directory, const std::string& name) { OnChange(directory, name); });
  for (uv_timer_t* timer : {&settle_, &idle_look_}) {
    timer->data = this;
    NOWCALLS_CHECK(uv_timer_init(loop_, timer) == 0);
  }
  // The files may have changed since the process read them.
  BeginLook();
}

void FileWatch::Stop() {
  if (loop_ == nullptr || std::exchange(stopped_, true)) return;
  watches_->Close();
  uv_close(reinterpret_cast<uv_handle_t*>(&settle_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&idle_look_), nullptr);
}

void FileWatch::ReadNow() {
  asked_ = true;
  MarkDue(Due::kRead);
  BeginLook();
}

void FileWatch::MarkDue(Due due) { due_ = std::max(due_, due); }

void FileWatch::OnChange(const std::string& directory, const std::string& name) {
  const auto concerns = [&](const PathEntry& entry) {
    // An empty name is any entry. The directory's own name: it was removed or replaced.
    return entry.directory == directory && (name.empty() || name == entry.name ||
                                            name == directory.substr(directory.rfind('/') + 1));
  };
  for (const File& file : files_) {
    if (std::none_of(file.seen.entries.begin(), file.seen.entries.end(), concerns)) continue;
    MarkDue(Due::kLook);
    return SettleThenLook();
  }
}

// Each change puts the look off, so that files that belong together are read together.
void FileWatch::SettleThenLook() {
  const uint64_t now_ms = uv_now(loop_);
  if (!first_change_ms_.has_value()) first_change_ms_ = now_ms;
  const uint64_t latest_ms = *first_change_ms_ + options_.settle_ms_max;
  const uint64_t left_ms = latest_ms > now_ms ? latest_ms - now_ms : 0;
  NOWCALLS_CHECK(uv_timer_start(
                     &settle_,
                     [](uv_timer_t* timer) { static_cast<FileWatch*>(timer->data)->BeginLook(); },
                     std::min(options_.settle_ms, left_ms), 0) == 0);
}

void FileWatch::BeginLook() {
  if (loop_ == nullptr || looking_ || stopped_) return;  // OnLooked goes on with what is due then.
  first_change_ms_.reset();
  auto look = std::make_unique<Look>();
  look->owner = this;
  look->read = &read_;
  look->due = std::exchange(due_, Due::kNo);
  look->work.data = look.get();
  for (const File& file : files_) {
    Item item{.path = file.path, .before = file.seen};
    // Stamps are trusted only if two looks agreed: a second change within the tick of the file's
    // time stamps would not show in them.
    if (look->due == Due::kIfChanged && file.rests) item.known = file.seen.signature;
    look->items.push_back(std::move(item));
  }
  looking_ = true;
  NOWCALLS_CHECK(uv_queue_work(
                     loop_, &look.release()->work,
                     [](uv_work_t* work) { Work(static_cast<Look*>(work->data)); },
                     [](uv_work_t* work, int /*status*/) {
                       const std::unique_ptr<Look> done(static_cast<Look*>(work->data));
                       done->owner->OnLooked(done.get());
                     }) == 0);
}

// Thread: a worker of libuv, which touches the watch through the look alone.
void FileWatch::Work(Look* look) {
  bool changed = look->due == Due::kRead;
  for (Item& item : look->items) {
    item.found = LookAtFile(item.path, item.known);
    item.found.text = {};
    look->unsettled = look->unsettled || item.unsettled();
    changed = changed || item.changed();
  }
  if (changed && !look->unsettled) look->take = (*look->read)();
}

void FileWatch::OnLooked(Look* look) {
  looking_ = false;
  if (stopped_) return;
  // 1. Where changes would show from now on; and what was found, unless it is looked at again.
  for (size_t i = 0; i < files_.size(); ++i) {
    files_[i].seen.entries = std::move(look->items[i].found.entries);
    if (!look->unsettled) TakeIn(&files_[i], &look->items[i]);
  }
  if (look->unsettled) {
    MarkDue(std::max(look->due, Due::kLook));
    SettleThenLook();
  }
  // 2. What was read.
  if (look->take) look->take(look->due == Due::kRead && std::exchange(asked_, false));
  // 3. A new watch asks for another look: neither look nor watch has seen what lay between.
  Watch();
  const bool settling = uv_is_active(reinterpret_cast<uv_handle_t*>(&settle_)) != 0;
  if (due_ != Due::kNo && !settling) BeginLook();
  ArmIdleLook();
}

void FileWatch::TakeIn(File* file, Item* item) {
  file->rests = item->unchanged() || item->found.signature == file->seen.signature;
  if (item->unchanged()) return;
  std::vector<PathEntry> entries = std::move(file->seen.entries);
  file->seen = std::move(item->found);
  file->seen.entries = std::move(entries);
}

void FileWatch::Watch() {
  std::map<std::string, DirectoryWatches::Identity> directories;
  for (const File& file : files_) {
    for (const PathEntry& entry : file.seen.entries) {
      directories[entry.directory] = {entry.device, entry.inode};
    }
  }
  const DirectoryWatches::Changes changes = watches_->Watch(directories);
  if (!changes.added.empty()) MarkDue(Due::kLook);
  std::set<std::string> unwatched;
  for (const auto& [directory, why] : changes.failed) {
    if (!told_.contains(directory)) unwatched_(directory, why);
    unwatched.insert(directory);
  }
  told_ = std::move(unwatched);
}

// Also with watches: inotify knows nothing of other machines' changes in a network file system, nor
// of a renamed directory further up.
void FileWatch::ArmIdleLook() {
  NOWCALLS_CHECK(uv_timer_start(
                     &idle_look_,
                     [](uv_timer_t* timer) {
                       auto* const watch = static_cast<FileWatch*>(timer->data);
                       watch->MarkDue(Due::kIfChanged);
                       watch->BeginLook();
                     },
                     told_.empty() ? options_.idle_look_ms : options_.poll_ms, 0) == 0);
}

}  // namespace nowcalls::server
