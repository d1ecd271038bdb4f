// LookAtFile: one look at a rule file: what it holds, whether it rests, and where a change of it
// would show.
//
// Thread: any; blocking. Never waits for a writer: a pipe is told and not read. A file that changes
// while it is being read is told as unsettled, for a later look.
#ifndef NOWCALLS_SERVER_RULE_FILE_LOOK_H_
#define NOWCALLS_SERVER_RULE_FILE_LOOK_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nowcalls::server {

// What stat tells that changes with the content, but for a second change within the file system's
// tick.
struct FileSignature {
  // Whatever the file system says, which need not be a time that fits nanoseconds.
  struct FileTime {
    int64_t seconds = 0;
    int64_t nanoseconds = 0;

    bool operator==(const FileTime&) const = default;
  };

  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  FileTime modified;
  FileTime changed;

  bool operator==(const FileSignature&) const = default;
};

// A directory entry on the way to the file: a change of it may give the path another content.
struct PathEntry {
  std::string directory;  // Absolute, without symbolic links.
  std::string name;
  // Which directory it was, so that one that was replaced is found out.
  uint64_t device = 0;
  uint64_t inode = 0;

  auto operator<=>(const PathEntry&) const = default;
};

struct FileLook {
  enum class Outcome {
    kUnchanged,   // It has the signature that is known; not read.
    kRead,        // `text`, `fingerprint`
    kMissing,     //
    kUnreadable,  // `problem`; also when it is too long.
    kNotAFile,    // A pipe or a device.
    kUnsettled,   // It changed while it was being read.
  };
  Outcome outcome = Outcome::kMissing;
  std::string problem;
  std::string text;
  uint64_t fingerprint = 0;
  FileSignature signature;
  // The file itself, and each symbolic link on the way to it, as Kubernetes' ..data; when something
  // is missing, the entry that would have to appear.
  std::vector<PathEntry> entries;
};

// Reads the file unless it has the `known` signature.
FileLook LookAtFile(const std::string& path, const std::optional<FileSignature>& known);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_RULE_FILE_LOOK_H_
