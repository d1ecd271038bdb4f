// ReadAhead: rows of several sources, read in order by a thread, "nc-load", ahead of the caller.
//
// Thread: one caller. Memory: kPartsMax parts of RowBlock::kBytesEnough and 8 bytes a row, some 10
// MiB.
#ifndef NOWCALLS_STORE_ROCKS_READ_AHEAD_H_
#define NOWCALLS_STORE_ROCKS_READ_AHEAD_H_

#include <rocksdb/iterator.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace nowcalls::store {

class RowBlock {
 public:
  static constexpr size_t kBytesEnough = 128 * 1024;
  static constexpr size_t kRowBytes = 1024;  // Most rows have less.

  // Takes rows off `it` until full or at the end.
  void Fill(rocksdb::Iterator* it);

  // Calls visit(key, value) until a result is not ok.
  template <typename Visit>
  auto ForEach(const Visit& visit) const {
    decltype(visit({}, {})) result;
    std::string_view rest(bytes_.data(), used_);
    for (const auto& [key_bytes, value_bytes] : sizes_) {
      result = visit(rest.substr(0, key_bytes), rest.substr(key_bytes, value_bytes));
      if (!result.ok()) break;
      rest.remove_prefix(key_bytes + value_bytes);
    }
    return result;
  }

 private:
  std::vector<char> bytes_;
  size_t used_ = 0;                                   // Of bytes_.
  std::vector<std::pair<uint32_t, uint32_t>> sizes_;  // Of key and value of each row.
};

class ReadAhead {
 public:
  static constexpr size_t kPartsMax = 64;

  // Makes an iterator at the source's first row. Called once.
  using Open = std::function<std::unique_ptr<rocksdb::Iterator>()>;

  // Rows of one source; each source has a part.
  struct Part {
    size_t source = 0;  // Its place among those given.
    RowBlock rows;
    rocksdb::Status status;  // Not ok: the source failed behind these rows, which are its last.
  };

  explicit ReadAhead(std::vector<Open> sources);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Rows, valid until the next call; nullptr at the end.
  const Part* Next();

 private:
  void Run();
  bool Read(size_t source, rocksdb::Iterator* it);
  Part* Take();
  void Show(Part* part);

  const std::vector<Open> sources_;
  Part* shown_ = nullptr;  // What Next returned last, of parts_.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Part>> parts_;  // Guarded by mutex_, as are the next four.
  std::vector<Part*> free_;  // A part that was used last is used first: it is still in the cache.
  std::deque<Part*> full_;
  bool finished_ = false;  // Nothing is added to `full_` any more.
  bool stopped_ = false;   // The caller wants no more.

  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_READ_AHEAD_H_
