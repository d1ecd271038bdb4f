#include "server/rules/file_rule_source.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

// One file in one look: the question, and the findings.
struct FileRuleSource::Item {
  size_t file = 0;
  Due due = Due::kNo;
  std::string path;
  std::optional<FileSignature> known;

  FileLook found;
  RuleContent content;  // If one was read.
};

struct FileRuleSource::Look {
  uv_work_t work{};
  FileRuleSource* owner = nullptr;
  const RuleSink* sink = nullptr;
  bool strict = false;
  std::vector<Item> items;
};

namespace {

// Looks in a row at a file that never rests, before the log says so.
constexpr int kUnsettledLooksMax = 50;

std::string DirectoryName(const std::string& directory) {
  return directory.substr(directory.rfind('/') + 1);
}

}  // namespace

std::string FileSourceName(const std::string& path) {
  std::error_code ignored;  // Then it is named as the operator wrote it.
  const auto absolute = std::filesystem::absolute(path, ignored);
  return "file:" + (ignored ? path : absolute.lexically_normal().string());
}

FileRuleSource::FileRuleSource(uv_loop_t* loop, const std::vector<RuleFile>& files,
                               const std::vector<RulesAtStart>& at_start,
                               const FileRuleSourceOptions& options, RuleDocuments::Log log)
    : loop_(loop),
      options_(options),
      log_(log),
      documents_(std::move(log)),
      watches_(loop, options.watches_max,
               [this](const std::string& directory, const std::string& name) {
                 OnChange(directory, name);
               }) {
  NOWCALLS_CHECK(files.size() == at_start.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    files_.push_back({.path = path,
                      .document = std::make_unique<RuleDocument>(
                          files[i].name_space, FileSourceName(path), "file " + path,
                          LogField{"file", path}, at_start[i])});
  }
  for (uv_timer_t* timer : {&settle_, &idle_look_}) {
    timer->data = this;
    NOWCALLS_CHECK(uv_timer_init(loop_, timer) == 0);
  }
}

FileRuleSource::~FileRuleSource() { NOWCALLS_CHECK(stopped_ && !looking_); }

Status FileRuleSource::Start(RuleSink* sink) {
  std::vector<RuleDocument*> documents;
  for (const File& file : files_) documents.push_back(file.document.get());
  // The namespace of every file, before any watch: a start fails as a whole.
  NOWCALLS_RETURN_IF_ERROR(documents_.Start(sink, documents, options_.takeover));
  // Files may have changed since the start read them.
  MarkAll(Due::kRead);
  BeginLook();
  return Status::Ok();
}

void FileRuleSource::Stop() {
  if (std::exchange(stopped_, true)) return;
  watches_.Close();
  uv_close(reinterpret_cast<uv_handle_t*>(&settle_), nullptr);
  uv_close(reinterpret_cast<uv_handle_t*>(&idle_look_), nullptr);
}

void FileRuleSource::ReloadAll() {
  MarkAll(Due::kReload);
  BeginLook();
}

void FileRuleSource::MarkAll(Due due) {
  for (File& file : files_) file.due = std::max(file.due, due);
}

void FileRuleSource::OnChange(const std::string& directory, const std::string& name) {
  bool any = false;
  for (File& file : files_) {
    for (const PathEntry& entry : file.entries) {
      // An empty name is any entry. The directory's own name: it was removed or replaced.
      const bool concerned = name.empty() || name == entry.name || name == DirectoryName(directory);
      if (entry.directory != directory || !concerned) continue;
      file.due = std::max(file.due, Due::kRead);
      any = true;
    }
  }
  if (any) SettleThenLook();
}

// Each change puts the look off, so that changes that belong together are seen together;
// settle_ms_max bounds that.
void FileRuleSource::SettleThenLook() {
  const uint64_t now_ms = uv_now(loop_);
  if (!first_change_ms_.has_value()) first_change_ms_ = now_ms;
  const uint64_t latest_ms = *first_change_ms_ + options_.settle_ms_max;
  const uint64_t left_ms = latest_ms > now_ms ? latest_ms - now_ms : 0;
  NOWCALLS_CHECK(
      uv_timer_start(
          &settle_,
          [](uv_timer_t* timer) { static_cast<FileRuleSource*>(timer->data)->BeginLook(); },
          std::min(options_.settle_ms, left_ms), 0) == 0);
}

void FileRuleSource::BeginLook() {
  if (looking_ || stopped_) return;  // OnLooked goes on with what is due then.
  first_change_ms_.reset();
  // 1. Copy what the worker needs: it shares nothing with the loop.
  auto look = std::make_unique<Look>();
  for (size_t i = 0; i < files_.size(); ++i) {
    File& file = files_[i];
    if (file.due == Due::kNo) continue;
    Item item;
    item.file = i;
    item.due = std::exchange(file.due, Due::kNo);
    item.path = file.path;
    item.content = {.name_space = file.document->name_space,
                    .source = file.document->source,
                    .fingerprint_before = file.document->fingerprint,
                    .again = item.due == Due::kReload};
    // Size and times are trusted only if two looks agreed: a second change within the tick of the
    // file's time stamps would not show in them.
    if (item.due == Due::kIfChanged && file.rests) item.known = file.signature;
    look->items.push_back(std::move(item));
  }
  if (look->items.empty()) return ArmIdleLook();
  look->owner = this;
  look->sink = documents_.sink();
  look->strict = options_.strict;
  look->work.data = look.get();
  // 2. Look, read and parse on a worker of libuv: a file server may hang, and sets are large.
  looking_ = true;
  NOWCALLS_CHECK(uv_queue_work(
                     loop_, &look.release()->work,
                     [](uv_work_t* work) { Work(static_cast<Look*>(work->data)); },
                     [](uv_work_t* work, int /*status*/) {
                       const std::unique_ptr<Look> done(static_cast<Look*>(work->data));
                       done->owner->OnLooked(done.get());
                     }) == 0);
}

// Thread: a worker of libuv, which touches the source through the look alone.
void FileRuleSource::Work(Look* look) {
  for (Item& item : look->items) {
    item.found = LookAtFile(item.path, item.known);
    if (item.found.outcome != FileLook::Outcome::kRead) continue;
    item.content.fingerprint = item.found.fingerprint;
    item.content.Check(*look->sink, item.found.text, look->strict);
    item.found.text = {};
  }
}

void FileRuleSource::OnLooked(Look* look) {
  looking_ = false;
  if (stopped_) return;
  // 1. What was found, file by file.
  RuleDocuments::Reloaded reloaded;
  for (const Item& item : look->items) {
    File* file = &files_[item.file];
    if (item.due == Due::kReload) reloaded.insert(file->document.get());
    TakeIn(file, item);
  }
  // 2. Sets that are new, and sets that were refused before: the reason may have gone.
  documents_.Deliver(reloaded);
  // 3. Watch the directories on the way to the files; a new watch asks for another look.
  Watch();
  // 4. Look again at once, if something came up meanwhile and no timer is set for it.
  const bool due =
      std::any_of(files_.begin(), files_.end(), [](const File& f) { return f.due != Due::kNo; });
  const bool settling = uv_is_active(reinterpret_cast<uv_handle_t*>(&settle_)) != 0;
  if (due && !settling) BeginLook();
  ArmIdleLook();
}

void FileRuleSource::TakeIn(File* file, const Item& item) {
  using Outcome = FileLook::Outcome;
  const FileLook& found = item.found;
  const bool asked = item.due == Due::kReload;
  RuleDocument* const document = file->document.get();
  // 1. Where a change would show from now on, and whether two looks found the same.
  file->entries = found.entries;
  const bool seen = found.outcome == Outcome::kRead || found.outcome == Outcome::kUnchanged;
  file->rests = seen && found.signature == file->signature;
  file->signature = found.signature;
  // 2. A file that changes while it is read is looked at again soon; the log says so once.
  if (found.outcome == Outcome::kUnsettled) {
    file->due = std::max(file->due, item.due);
    if (++file->unsettled_looks >= kUnsettledLooksMax) {
      documents_.Trouble(document, std::string("never comes to rest; ") + kBeforeStay, asked);
    }
    return SettleThenLook();
  }
  file->unsettled_looks = 0;
  // 3. Content that was read may come into force; all else leaves the rules of before.
  RuleDocuments::BeginLook(document, found.outcome == Outcome::kRead ? found.fingerprint : 0,
                           asked);
  switch (found.outcome) {
    case Outcome::kUnchanged:
    case Outcome::kUnsettled: return;
    case Outcome::kRead: return documents_.Take(document, item.content);
    case Outcome::kMissing:
      return documents_.Trouble(
          document, "is gone; its rules stay in force until it is back with others", asked);
    case Outcome::kUnreadable:
      return documents_.Trouble(document, found.problem + "; " + kBeforeStay, asked);
    case Outcome::kNotAFile:
      // A pipe cannot be read twice.
      return documents_.Ignore(
          document, "is no regular file: it is read at the start of the server only", asked);
  }
}

void FileRuleSource::Watch() {
  std::map<std::string, DirectoryWatches::Identity> directories;
  for (const File& file : files_) {
    for (const PathEntry& entry : file.entries) {
      // Several files often share a directory; one watch does for all.
      directories[entry.directory] = {entry.device, entry.inode};
    }
  }
  const DirectoryWatches::Changes changes = watches_.Watch(directories);
  // Neither the look nor the watch has seen a change between the two.
  for (File& file : files_) {
    for (const PathEntry& entry : file.entries) {
      if (changes.added.contains(entry.directory)) file.due = std::max(file.due, Due::kRead);
    }
  }
  NoteUnwatched(changes.failed);
}

void FileRuleSource::NoteUnwatched(const std::map<std::string, std::string>& failed) {
  std::set<std::string> unwatched;
  for (const auto& [directory, why] : failed) {
    // Logged once for each directory, until a watch has succeeded in between.
    unwatched.insert(directory);
    if (unwatched_.contains(directory)) continue;
    log_(Severity::kWarn,
         "cannot watch " + directory + " (" + why + "); the rule files there are looked at every " +
             std::to_string(options_.poll_ms) + " ms instead",
         {{"reason", why}});
  }
  unwatched_ = std::move(unwatched);
}

void FileRuleSource::ArmIdleLook() {
  // Also with watches: inotify knows nothing of other machines' changes in a network file system,
  // nor of a renamed directory further up.
  NOWCALLS_CHECK(uv_timer_start(
                     &idle_look_,
                     [](uv_timer_t* timer) {
                       auto* source = static_cast<FileRuleSource*>(timer->data);
                       source->MarkAll(Due::kIfChanged);
                       source->BeginLook();
                     },
                     unwatched_.empty() ? options_.idle_look_ms : options_.poll_ms, 0) == 0);
}

}  // namespace nowcalls::server
