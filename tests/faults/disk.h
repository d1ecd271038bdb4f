// Disk: a model of the disk under one directory, that knows what a power cut may leave of it.
//
// Thread: one at a time. It is told of changes in the order in which they were made and keeps them
// apart from what is durable until a sync:
//
// - What was written to a file is durable when that file was synced, its size too. Of what was not,
//   each sector of 512 bytes is as it was, or as it was after any of the writes to it, whatever
//   became of the others. A sector that never reached the disk is zeros. The size is any that the
//   file had since, or anything in between.
// - That a file was made, renamed or deleted is durable when the directory was synced. Each of the
//   changes since may have happened or not, whatever became of the others. A sync of a file makes
//   its name durable as little as a sync of the directory makes its content so.
//
// That is worse than the file systems are that a server meets, in their usual modes.
#ifndef NOWCALLS_FAULTS_DISK_H_
#define NOWCALLS_FAULTS_DISK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nowcalls::faults {

struct DiskChange {
  enum class Kind {
    kMake,      // `name` is the new file `file`.
    kWrite,     // `bytes` at `offset` of `file`.
    kTruncate,  // `file` to `offset` bytes.
    kSyncFile,
    kRename,  // `name` to `to`.
    kDelete,  // `name`.
    kSyncDirectory,
    kBegun,         // No change: batch `offset` is being committed.
    kCommitted,     // It was; with the operating system at least.
    kAcknowledged,  // It is on the disk.
  };

  Kind kind = Kind::kSyncDirectory;
  uint64_t file = 0;
  uint64_t offset = 0;
  std::string name;
  std::string to;
  std::string bytes;
};

// What a directory holds: the bytes of each file by its name.
using DiskImage = std::map<std::string, std::string>;

class Disk {
 public:
  static constexpr uint64_t kSectorBytes = 512;
  // These seeds leave nothing of what is not durable, and all of it.
  static constexpr uint64_t kSeedNothing = 0;
  static constexpr uint64_t kSeedAll = 1;

  // Begins with `image`, durable, its files numbered from 1 on in the order of their names.
  explicit Disk(const DiskImage& image = {});

  void Apply(const DiskChange& change);

  // What is left of it when the power is cut now. A seed always leaves the same.
  DiskImage CutPower(uint64_t seed) const;

 private:
  struct File {
    std::string durable;
    std::vector<DiskChange> pending;  // Writes and truncations.
  };

  static std::string CutFile(const File& file, uint64_t seed);
  static uint64_t SizeLeft(const File& file, uint64_t seed, uint64_t* size_max);
  static void ApplyName(const DiskChange& change, std::map<std::string, uint64_t>* names);
  std::map<std::string, uint64_t> NamesLeft(uint64_t seed) const;

  std::map<uint64_t, File> files_;  // Deleted ones too, since their names may come back.
  std::map<std::string, uint64_t> durable_names_;
  std::vector<DiskChange> pending_names_;
};

// Writes `image` into the directory at `path`, in place of all that is there.
void WriteImage(const DiskImage& image, const std::string& path);
DiskImage ReadImage(const std::string& path);

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_DISK_H_
