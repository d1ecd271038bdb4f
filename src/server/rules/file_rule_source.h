// FileRuleSource: watches rule files and loads them again when they change.
//
// Thread: loop; files are read and parsed on libuv's workers, one look at a time.
//
// RuleDocuments puts changed sets in force. A set that the sink refuses is tried with every look.
// Invalid content waits for a change. A file that is gone, unreadable or not regular waits for its
// return.
#ifndef NOWCALLS_SERVER_RULES_FILE_RULE_SOURCE_H_
#define NOWCALLS_SERVER_RULES_FILE_RULE_SOURCE_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "server/config/config.h"
#include "server/files/directory_watches.h"
#include "server/files/file_look.h"
#include "server/rules/rule_documents.h"

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

class FileRuleSource final : public RuleSource {
 public:
  // `at_start`: by file. Content that was loaded is not loaded again; refused content is tried
  // again, unlogged.
  FileRuleSource(uv_loop_t* loop, const std::vector<RuleFile>& files,
                 const std::vector<RulesAtStart>& at_start, const FileRuleSourceOptions& options,
                 RuleDocuments::Log log);
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
    std::string path;
    std::unique_ptr<RuleDocument> document;
    Due due = Due::kNo;
    // Of the last look; `rests`: the look before found the same.
    FileSignature signature{};
    bool rests = false;
    std::vector<PathEntry> entries{};
    int unsettled_looks = 0;  // In a row.
  };

  struct Item;
  struct Look;

  void OnChange(const std::string& directory, const std::string& name);
  void SettleThenLook();
  void MarkAll(Due due);
  void BeginLook();
  static void Work(Look* look);
  void OnLooked(Look* look);
  void TakeIn(File* file, const Item& item);
  void Watch();
  void NoteUnwatched(const std::map<std::string, std::string>& failed);
  void ArmIdleLook();

  uv_loop_t* const loop_;
  const FileRuleSourceOptions options_;
  const RuleDocuments::Log log_;
  std::vector<File> files_;
  RuleDocuments documents_;
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
