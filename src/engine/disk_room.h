// DiskRoom: whether the ledger's disk has room for new tokens. Between two marks the answer stays.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_DISK_ROOM_H_
#define NOWCALLS_ENGINE_DISK_ROOM_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/limits.h"

namespace nowcalls::engine {

class DiskRoom {
 public:
  // Inodes. A start and a flush need several at once.
  static constexpr uint64_t kFilesLow = 64;
  static constexpr uint64_t kFilesHigh = 128;

  explicit DiskRoom(const Limits& limits) { SetMarks(limits); }

  // From the next Update on.
  void SetMarks(const Limits& limits) {
    low_bytes_ = limits.disk_free_low_bytes;
    high_bytes_ = limits.disk_free_high();
  }

  // The line to log; empty unless low() changed. Unknown bytes change nothing; unknown inodes are
  // enough.
  std::string Update(std::optional<uint64_t> free_bytes,
                     std::optional<uint64_t> free_files = std::nullopt) {
    free_bytes_ = free_bytes;
    free_files_ = free_files;
    if (!free_bytes.has_value()) return "";
    const bool was_low = low();
    few_files_ =
        low_bytes_ > 0 && free_files.value_or(kFilesHigh) < (few_files_ ? kFilesHigh : kFilesLow);
    few_bytes_ = *free_bytes < (few_bytes_ ? high_bytes_ : low_bytes_);
    if (low() == was_low) return "";
    const std::string free = std::to_string(*free_bytes) + " bytes are free for the ledger";
    if (!low()) return free + " again: tokens are granted";
    if (few_files_) {
      return "only " + std::to_string(*free_files) +
             " inodes are free on the ledger's file system, fewer than " +
             std::to_string(kFilesLow) + ": no token is granted until " +
             std::to_string(kFilesHigh) +
             " are free; tokens that are out can be kept and released. Delete files on that disk";
    }
    return "only " + free + ", fewer than disk-free-low-bytes (" + std::to_string(low_bytes_) +
           "): no token is granted until " + std::to_string(high_bytes_) +
           " are free; tokens that are out can be kept and released. Make room on that disk";
  }

  bool low() const { return few_bytes_ || few_files_; }
  std::optional<uint64_t> free_bytes() const { return free_bytes_; }
  std::optional<uint64_t> free_files() const { return free_files_; }

 private:
  uint64_t low_bytes_ = 0;
  uint64_t high_bytes_ = 0;
  std::optional<uint64_t> free_bytes_;  // At the last look, as the next.
  std::optional<uint64_t> free_files_;
  bool few_bytes_ = false;
  bool few_files_ = false;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_DISK_ROOM_H_
