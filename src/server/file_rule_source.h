// FileRuleSource: rule files that are watched, and loaded again when they change.
//
// Thread: loop. Files are looked at, read and parsed on libuv's worker threads, one look at a time;
// only RuleSink::Replace happens on the loop.
//
// Happy path: an entry of a watched directory changes; settle_ms later, when writers have come to
// rest, the files concerned are looked at; those with another content are checked, and all sets
// that changed are put in force together, so that flows may move between them. Failure modes, in
// all of which the rules of before stay in force and the log says why, once:
//  - The content is no valid set: refused with line, or rule and field, until it changes.
//  - The sink refuses the sets together: each is tried alone. A set that is still refused is tried
//    again with every later look, since the reason may have gone.
//  - The file is gone, cannot be read or is no regular file: it is loaded when it is back. A
//  refused
//    set is forgotten with its file.
//  - A directory cannot be watched: its files are looked at every poll_ms. All files are looked at
//    every idle_look_ms in any case: inotify knows nothing of changes that other machines make in a
//    network file system, nor of a directory further up that is renamed.
#ifndef NOWCALLS_SERVER_FILE_RULE_SOURCE_H_
#define NOWCALLS_SERVER_FILE_RULE_SOURCE_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log_record.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "server/config.h"
#include "server/directory_watches.h"
#include "server/log_line.h"
#include "server/rule_file_look.h"

namespace nowcalls::server {

// "file:" and the absolute path: how a file is named as a rule source. The path stays as the
// operator wrote it otherwise: where its links lead today is of no concern.
std::string FileSourceName(const std::string& path);

struct FileRuleSourceOptions {
  uint64_t settle_ms = 200;        // From the last change to the look.
  uint64_t settle_ms_max = 2000;   // From the first, for files that do not come to rest.
  uint64_t poll_ms = 2000;         // While a directory cannot be watched.
  uint64_t idle_look_ms = 30'000;  // While all are.
  size_t watches_max = 256;
  bool takeover = false;  // Claims namespaces whose rules came by RPC.
  bool strict = false;    // A set that is warned of is refused.
};

// What the start of the server has found in a file.
struct FileAtStart {
  uint64_t fingerprint = 0;  // Of its content (base/fingerprint.h); 0: it could not be read.
  bool is_refused = false;   // It is not in force, and the log has told why.
};

class FileRuleSource final : public RuleSource {
 public:
  using Log = std::function<void(LogLevel level, const std::string& text, const LogFields& fields)>;

  // `at_start` is file by file: one that still holds what was loaded is not loaded again, and what
  // was refused is tried again, but not told again.
  FileRuleSource(uv_loop_t* loop, const std::vector<RuleFile>& files,
                 const std::vector<FileAtStart>& at_start, const FileRuleSourceOptions& options,
                 Log log);
  // REQUIRES: Stop was called, and the loop has closed every handle.
  ~FileRuleSource() override;
  FileRuleSource(const FileRuleSource&) = delete;
  FileRuleSource& operator=(const FileRuleSource&) = delete;

  // Claims the namespace of each file and begins to watch, with a look at all of them.
  Status Start(RuleSink* sink) override;
  void Stop() override;

  // Looks at all files now, loads each whether it has changed or not, and logs how it went.
  void ReloadAll();

  // No look is under way.
  bool idle() const { return !looking_; }

 private:
  // What a change asks of the next look at a file; the later, the more.
  enum class Due { kNo, kIfChanged, kRead, kReload };

  struct File {
    std::string name_space;
    std::string path;
    std::string source;
    uint64_t fingerprint = 0;  // Of the content that was last loaded or refused.
    // Of what it held when the start told what is wrong, for as long as it does; 0 as there.
    std::optional<uint64_t> told;
    Due due = Due::kNo;
    // Of the last look; `rests` when the one before found the same, so that a change within the
    // tick of the file's time stamps has been seen.
    FileSignature signature;
    bool rests = false;
    std::vector<PathEntry> entries;
    int unsettled_looks = 0;       // In a row.
    RuleSink::CheckedSet waiting;  // Valid, and not in force yet.
    // What is wrong with the file, and with its content, as was logged; empty: nothing.
    std::string trouble;
    std::string refusal;
  };

  struct Item;
  struct Look;

  void OnChange(const std::string& directory, const std::string& name);
  void SettleThenLook();
  void MarkAll(Due due);
  void BeginLook();
  static void Work(Look* look);
  void OnLooked(Look* look);
  void TakeIn(File* file, Item* item);
  static void Forget(File* file);
  void TakeContent(File* file, Item* item);
  using Files = std::set<File*>;
  void Deliver(const Files& reloaded);
  void DeliverEachAlone(std::vector<File*> files, const Files& reloaded);
  void InForce(File* file, bool reloaded);
  void Refused(File* file, const Status& why, bool again);
  void Trouble(File* file, const std::string& what, bool again);
  // Whether it is new.
  bool Complain(File* file, const std::string& what, std::string* before, bool again);
  void LogOf(const File& file, LogLevel level, const std::string& text,
             LogFields fields = {}) const;
  void Watch();
  void NoteUnwatched(const std::map<std::string, std::string>& failed);
  void ArmIdleLook();

  uv_loop_t* const loop_;
  const FileRuleSourceOptions options_;
  const Log log_;
  std::vector<File> files_;
  RuleSink* sink_ = nullptr;
  bool stopped_ = false;
  bool looking_ = false;
  DirectoryWatches watches_;
  std::set<std::string> unwatched_;  // Directories that could not be watched, as was logged.
  uv_timer_t settle_{};
  uv_timer_t idle_look_{};
  std::optional<uint64_t> first_change_ms_;  // Since the last look, in the loop's time.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILE_RULE_SOURCE_H_
