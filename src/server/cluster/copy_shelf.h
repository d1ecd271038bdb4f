// CopyShelf: the last copy of the ledger that was made for another member, and its pieces.
//
// Thread: the loop's; PrepareCopies any. A copy that nobody takes goes after a minute.
#ifndef NOWCALLS_SERVER_CLUSTER_COPY_SHELF_H_
#define NOWCALLS_SERVER_CLUSTER_COPY_SHELF_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"

namespace nowcalls::server {

// The directory of the last copy.
std::string LastCopyDir(const std::string& data_dir);
// Removes it, and makes room for another. kIoError.
Status PrepareCopies(const std::string& data_dir);

class CopyShelf {
 public:
  static constexpr size_t kPieceBytesMax = 256 * 1024;
  // So long after its last piece a copy is not replaced.
  static constexpr int64_t kTakenMsMax = 10'000;
  static constexpr int64_t kKeptMsMax = 60'000;

  explicit CopyShelf(const std::string& data_dir) : dir_(LastCopyDir(data_dir)) {}
  ~CopyShelf();
  CopyShelf(const CopyShelf&) = delete;
  CopyShelf& operator=(const CopyShelf&) = delete;

  const std::string& dir() const { return dir_; }
  // Another member takes the copy, or it is being removed. `now_ms`: BoottimeMs, as below.
  bool busy(int64_t now_ms) const {
    return dropping_ || (read_ms_ > 0 && now_ms - read_ms_ < kTakenMsMax);
  }
  // A copy is being made, or has just been asked for.
  void Keep(int64_t now_ms) { used_ms_ = now_ms; }
  // Now and then: removes one that is not used any more, on a worker of libuv.
  void DropUnused(uv_loop_t* loop, int64_t now_ms);

  // As engine::Driver::ReadCopy. The view lives until the next call.
  Result<std::string_view> Read(std::string_view file, uint64_t offset, int64_t now_ms);

 private:
  Status Open(std::string_view file);
  void Close();

  const std::string dir_;
  std::string file_;  // The one that is open.
  int fd_ = -1;
  std::vector<char> piece_;
  int64_t read_ms_ = 0;
  int64_t used_ms_ = 0;  // 0: there is no copy.
  bool dropping_ = false;
  uv_work_t work_{};
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_COPY_SHELF_H_
