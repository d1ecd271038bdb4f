// FileCallsLog: runs programs so that shim/file_calls_shim.cc writes down what they do to files.
// DiskView: what of that a power cut could take, at any moment.
//
// Thread: one at a time.
#ifndef NOWCALLS_FAULTS_FILE_CALLS_LOG_H_
#define NOWCALLS_FAULTS_FILE_CALLS_LOG_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::faults {

struct FileCall {
  std::string what;  // Of shim/file_calls.h.
  std::string path;
  std::string now;  // Of a link or a rename.
};

class FileCallsLog {
 public:
  testing::Environment environment() const;  // For the program.
  std::vector<FileCall> Read() const;        // What it has done so far.

 private:
  const testing::TempDir dir_;
};

// Nothing is certain of a file but what was synced after it was written, and nothing of a name but
// what its directory was synced for. What the program never wrote was there before, and is taken
// for durable, also under another name.
class DiskView {
 public:
  void Apply(const FileCall& call);
  // A file of two slots is certain as well when it was written once since it was synced: whoever
  // writes it changes one of them at a time.
  void HasTwoSlots(const std::string& path);

  // What is not certain of the tree at `root`: one line a file or name. `LOCK` and `LOG`, which are
  // not part of a ledger, do not count.
  std::vector<std::string> Loose(const std::string& root) const;
  // As Loose, but for the name of `root` itself.
  std::vector<std::string> LooseWithin(const std::string& root) const;
  // Files in the tree at `root` into which nobody has written: they are empty, or a call was
  // missed.
  std::vector<std::string> UnwrittenIn(const std::string& root) const;
  // The files in the tree at `root` that were written, copied or linked, without the path of it.
  std::set<std::string> FilesIn(const std::string& root) const;

 private:
  void AddName(const std::string& path);
  void Remove(const std::string& path);
  void Rename(const std::string& path, const std::string& now);

  enum class Content { kNone, kUnsynced, kSynced, kRewritten };  // kRewritten: once since a sync.

  static bool IsLoose(Content content) {
    return content == Content::kUnsynced || content == Content::kRewritten;
  }

  std::map<std::string, Content> files_;  // By path, those that were made, written or linked.
  std::set<std::string> loose_names_;     // Paths whose directories are to be synced.
};

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_FILE_CALLS_LOG_H_
