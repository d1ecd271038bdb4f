// FileRuleSource: watches rule files and loads them again when they change.
//
// Thread: loop; files are read and parsed on libuv's workers, one look at a time.
//
// Changed sets are put in force together: flows may move between files. In each case below the
// rules of before stay, and the log says why, once:
// - Invalid content waits for a change.
// - A set that the sink refuses is tried with every look.
// - A file that is gone, unreadable or not regular waits for its return.
#ifndef NOWCALLS_SERVER_RULES_FILE_RULE_SOURCE_H_
#define NOWCALLS_SERVER_RULES_FILE_RULE_SOURCE_H_

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
#include "server/config/config.h"
#include "server/files/directory_watches.h"
#include "server/files/file_look.h"
#include "server/log/log_line.h"

namespace nowcalls::server {

// "file:" and the absolute path as the operator wrote it, links not followed.
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

struct FileAtStart {
  uint64_t fingerprint = 0;  // Of its content (base/fingerprint.h); 0: it could not be read.
  bool is_refused = false;   // It is not in force, and the log has told why.
};

class FileRuleSource final : public RuleSource {
 public:
  using Log =
      std::function<void(Severity severity, const std::string& text, const LogFields& fields)>;

  // `at_start`: by file. Content that was loaded is not loaded again; refused content is tried
  // again, unlogged.
  FileRuleSource(uv_loop_t* loop, const std::vector<RuleFile>& files,
                 const std::vector<FileAtStart>& at_start, const FileRuleSourceOptions& options,
                 Log log);
  // REQUIRES: Stop was called, and all handles are closed.
  ~FileRuleSource() override;
  FileRuleSource(const FileRuleSource&) = delete;
  FileRuleSource& operator=(const FileRuleSource&) = delete;

  // Claims the files' namespaces.
  Status Start(RuleSink* sink) override;
  void Stop() override;

  // Loads all files, changed or not, and logs the results.
  void ReloadAll();

  bool idle() const { return !looking_; }

 private:
  // The later, the more the next look does.
  enum class Due { kNo, kIfChanged, kRead, kReload };

  struct File {
    std::string name_space;
    std::string path;
    std::string source;
    uint64_t fingerprint = 0;  // Of the content that was last loaded or refused.
    // Of the fault that the start logged, while it lasts; 0 as there.
    std::optional<uint64_t> told;
    Due due = Due::kNo;
    // Of the last look; `rests`: the look before found the same.
    FileSignature signature;
    bool rests = false;
    std::vector<PathEntry> entries;
    int unsettled_looks = 0;       // In a row.
    RuleSink::CheckedSet waiting;  // Valid, and not in force yet.
    // Faults of file and content, as logged; empty: none.
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
  bool Complain(File* file, const std::string& what, std::string* before, bool again);
  void LogOf(const File& file, Severity severity, const std::string& text,
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

#endif  // NOWCALLS_SERVER_RULES_FILE_RULE_SOURCE_H_
