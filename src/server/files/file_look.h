// LookAtFile: one look at a file: content, whether it rests, where a change would show.
//
// Thread: any; blocking, but pipes are not read.
#ifndef NOWCALLS_SERVER_FILES_FILE_LOOK_H_
#define NOWCALLS_SERVER_FILES_FILE_LOOK_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace nowcalls::server {

// From stat. Misses a second change within the file system's tick.
struct FileSignature {
  // Need not fit nanoseconds.
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

// A directory entry on the way to the file.
struct PathEntry {
  std::string directory;  // Absolute, without symbolic links.
  std::string name;
  // Identity of the directory, to notice its replacement.
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
  // The file and each symbolic link before it, as Kubernetes' ..data; else the first entry that is
  // missing.
  std::vector<PathEntry> entries;
};

// Skips the read if the signature is `known`.
FileLook LookAtFile(const std::string& path, const std::optional<FileSignature>& known);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_FILES_FILE_LOOK_H_
