#include "server/rules/file_rule_source.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "core/core.h"
#include "core/rules/rule_set.h"

namespace nowcalls::server {

// One file in one look: the question, and the findings.
struct FileRuleSource::Item {
  size_t file = 0;
  Due due = Due::kNo;
  std::string name_space;
  std::string path;
  std::string source;
  uint64_t fingerprint = 0;
  std::optional<FileSignature> known;

  FileLook found;
  bool changed = false;  // Another content than before, or to be loaded all the same.
  Status invalid;        // What is wrong with it.
  RuleSink::CheckedSet set;
};

struct FileRuleSource::Look {
  uv_work_t work{};
  FileRuleSource* owner = nullptr;
  const RuleSink* sink = nullptr;
  bool strict = false;
  std::vector<Item> items;
};

namespace {

std::string CountText(size_t rules) {
  return std::to_string(rules) + (rules == 1 ? " rule" : " rules");
}

// Looks in a row at a file that never rests, before the log says so.
constexpr int kUnsettledLooksMax = 50;

// Rounds of trying sets one by one: a set in force may make room for another.
constexpr int kRoundsMax = 4;

constexpr char kBeforeStay[] = "the rules of before stay in force";

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
                               const std::vector<FileAtStart>& at_start,
                               const FileRuleSourceOptions& options, Log log)
    : loop_(loop),
      options_(options),
      log_(std::move(log)),
      watches_(loop, options.watches_max,
               [this](const std::string& directory, const std::string& name) {
                 OnChange(directory, name);
               }) {
  NOWCALLS_CHECK(files.size() == at_start.size());
  for (size_t i = 0; i < files.size(); ++i) {
    File file;
    file.name_space = files[i].name_space;
    file.path = files[i].path;
    file.source = FileSourceName(files[i].path);
    // Content in force is not loaded again. Refused content is tried again, and not logged again.
    (at_start[i].is_refused ? file.told.emplace() : file.fingerprint) = at_start[i].fingerprint;
    files_.push_back(std::move(file));
  }
  for (uv_timer_t* timer : {&settle_, &idle_look_}) {
    timer->data = this;
    NOWCALLS_CHECK(uv_timer_init(loop_, timer) == 0);
  }
}

FileRuleSource::~FileRuleSource() { NOWCALLS_CHECK(stopped_ && !looking_); }

Status FileRuleSource::Start(RuleSink* sink) {
  sink_ = sink;
  for (const File& file : files_) {
    // The namespace of every file, before any watch: a start fails as a whole.
    NOWCALLS_RETURN_IF_ERROR(sink->Claim(
        {.source = file.source, .name_space = file.name_space, .takeover = options_.takeover}));
  }
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
    item.name_space = file.name_space;
    item.path = file.path;
    item.source = file.source;
    item.fingerprint = file.fingerprint;
    // Size and times are trusted only if two looks agreed: a second change within the tick of the
    // file's time stamps would not show in them.
    if (item.due == Due::kIfChanged && file.rests) item.known = file.signature;
    look->items.push_back(std::move(item));
  }
  if (look->items.empty()) return ArmIdleLook();
  look->owner = this;
  look->sink = sink_;
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
    // Content decides: times can stand still between two writes.
    item.changed = item.found.fingerprint != item.fingerprint || item.due == Due::kReload;
    if (!item.changed) continue;
    Result<RuleSink::CheckedSet> set =
        look->sink->Check(item.source, item.name_space, item.found.text);
    item.invalid = set.ok() && look->strict ? (*set)->parsed.CheckStrict() : set.status();
    if (item.invalid.ok()) item.set = *std::move(set);
    item.found.text = {};
  }
}

void FileRuleSource::OnLooked(Look* look) {
  looking_ = false;
  if (stopped_) return;
  // 1. What was found, file by file.
  Files reloaded;
  for (Item& item : look->items) {
    File* file = &files_[item.file];
    if (item.due == Due::kReload) reloaded.insert(file);
    TakeIn(file, &item);
  }
  // 2. Sets that are new, and sets that were refused before: the reason may have gone.
  Deliver(reloaded);
  // 3. Watch the directories on the way to the files; a new watch asks for another look.
  Watch();
  // 4. Look again at once, if something came up meanwhile and no timer is set for it.
  const bool due =
      std::any_of(files_.begin(), files_.end(), [](const File& f) { return f.due != Due::kNo; });
  const bool settling = uv_is_active(reinterpret_cast<uv_handle_t*>(&settle_)) != 0;
  if (due && !settling) BeginLook();
  ArmIdleLook();
}

void FileRuleSource::TakeIn(File* file, Item* item) {
  using Outcome = FileLook::Outcome;
  const FileLook& found = item->found;
  const bool again = item->due == Due::kReload;
  // 1. Where a change would show from now on, and whether two looks found the same.
  file->entries = found.entries;
  const bool seen = found.outcome == Outcome::kRead || found.outcome == Outcome::kUnchanged;
  file->rests = seen && found.signature == file->signature;
  file->signature = found.signature;
  // 2. A file that changes while it is read is looked at again soon; the log says so once.
  if (found.outcome == Outcome::kUnsettled) {
    file->due = std::max(file->due, item->due);
    if (++file->unsettled_looks >= kUnsettledLooksMax) {
      Trouble(file, std::string("never comes to rest; ") + kBeforeStay, again);
    }
    return SettleThenLook();
  }
  file->unsettled_looks = 0;
  // 3. A fault that the start has logged is logged again only for other content, or when asked.
  const uint64_t content = found.outcome == Outcome::kRead ? found.fingerprint : 0;
  if (again || content != file->told.value_or(content)) file->told.reset();
  // 4. Content that was read may come into force; all else leaves the rules of before.
  switch (found.outcome) {
    case Outcome::kUnchanged:
    case Outcome::kUnsettled: return;
    case Outcome::kRead: return TakeContent(file, item);
    case Outcome::kMissing:
      return Trouble(file, "is gone; its rules stay in force until it is back with others", again);
    case Outcome::kUnreadable: return Trouble(file, found.problem + "; " + kBeforeStay, again);
    case Outcome::kNotAFile:
      // A pipe cannot be read twice.
      Forget(file);
      Complain(file, "is no regular file: it is read at the start of the server only",
               &file->trouble, again);
      return;
  }
}

// A set that waits or was refused goes with its content. Content that an operator deleted must not
// come into force later; the same content, put back, counts as new.
void FileRuleSource::Forget(File* file) {
  file->waiting.reset();
  if (!std::exchange(file->refusal, {}).empty()) file->fingerprint = 0;
}

void FileRuleSource::TakeContent(File* file, Item* item) {
  const bool was_in_trouble = !std::exchange(file->trouble, {}).empty();
  // The content in force, or the content refused: nothing to do but to end a trouble.
  if (!item->changed) {
    if (!was_in_trouble) return;
    LogOf(*file, Severity::kInfo, "is back, unchanged");
    return sink_->NoteRefused(file->source, file->name_space, Status::Ok());
  }
  file->fingerprint = item->found.fingerprint;
  file->waiting = std::move(item->set);
  if (!item->invalid.ok()) Refused(file, item->invalid, /*again=*/true);
}

void FileRuleSource::Deliver(const Files& reloaded) {
  std::vector<File*> files;
  std::vector<RuleSink::CheckedSet> sets;
  for (File& file : files_) {
    if (file.waiting == nullptr) continue;
    files.push_back(&file);
    sets.push_back(file.waiting);
  }
  if (files.empty()) return;
  // Together: flows may move from one file to another in one step.
  const Status together = sink_->Replace(sets);
  if (!together.ok()) {
    if (files.size() > 1) return DeliverEachAlone(std::move(files), reloaded);
    return Refused(files[0], together, reloaded.contains(files[0]));
  }
  for (File* file : files) InForce(file, reloaded.contains(file));
}

// A set that is refused does not hold the others up.
void FileRuleSource::DeliverEachAlone(std::vector<File*> files, const Files& reloaded) {
  std::map<File*, Status> refused;
  for (int round = 0; round < kRoundsMax; ++round) {
    const size_t before = files.size();
    std::erase_if(files, [&](File* file) {
      refused[file] = sink_->Replace({file->waiting});
      if (refused[file].ok()) InForce(file, reloaded.contains(file));
      return refused[file].ok();
    });
    if (files.empty() || files.size() == before) break;
  }
  for (File* file : files) Refused(file, refused[file], reloaded.contains(file));
}

void FileRuleSource::InForce(File* file, bool reloaded) {
  const core::RuleSet& set = *file->waiting;
  LogOf(*file, Severity::kInfo,
        (reloaded ? "reloaded, " : "loaded, ") + CountText(set.parsed.rules.size()) +
            " of namespace " + Quoted(file->name_space) + " in force");
  file->waiting.reset();
  file->refusal.clear();
}

void FileRuleSource::Refused(File* file, const Status& why, bool again) {
  if (Complain(file, why.message() + "; " + kBeforeStay, &file->refusal, again)) {
    sink_->NoteRefused(file->source, file->name_space, why);
  }
}

// A file without content is no better than a refused one: it forgets its set.
void FileRuleSource::Trouble(File* file, const std::string& what, bool again) {
  Forget(file);
  if (Complain(file, what, &file->trouble, again)) {
    sink_->NoteRefused(file->source, file->name_space,
                       Status::Unavailable("the file " + file->path + " " + what));
  }
}

// A lasting fault is new once, or when somebody asks. It is logged then, unless the start has.
bool FileRuleSource::Complain(File* file, const std::string& what, std::string* before,
                              bool again) {
  const bool told = std::exchange(file->told, std::nullopt).has_value();
  const bool is_new = std::exchange(*before, what) != what || again;
  if (is_new && !told) LogOf(*file, Severity::kWarn, what, {{"reason", what}});
  return is_new;
}

void FileRuleSource::LogOf(const File& file, Severity severity, const std::string& text,
                           LogFields fields) const {
  fields.push_back({"namespace", file.name_space});
  fields.push_back({"file", file.path});
  log_(severity, "rule file " + file.path + ": " + text, fields);
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
