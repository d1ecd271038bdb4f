// ReadAhead: the rows behind an iterator, read by a thread of its own while the caller does what is
// to be done with those before.
//
// Thread: one, which constructs, calls and destroys it; the iterator belongs to the other thread
// meanwhile, and after Next has returned nullptr to the caller again. Memory: kBlocks blocks of
// some more than kBlockBytes.
#ifndef NOWCALLS_STORE_READ_AHEAD_H_
#define NOWCALLS_STORE_READ_AHEAD_H_

#include <rocksdb/iterator.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace nowcalls::store {

// Keys and values, copied.
class RowBlock {
 public:
  static constexpr size_t kBytesEnough = 128 * 1024;

  // Takes rows off `it` until there are enough of them, or no more.
  void Fill(rocksdb::Iterator* it);

  // Calls visit(key, value) for each row, until it returns something that is not ok.
  template <typename Visit>
  auto ForEach(const Visit& visit) const {
    decltype(visit({}, {})) result;
    std::string_view rest = bytes_;
    for (const auto& [key_bytes, value_bytes] : sizes_) {
      result = visit(rest.substr(0, key_bytes), rest.substr(key_bytes, value_bytes));
      if (!result.ok()) break;
      rest.remove_prefix(key_bytes + value_bytes);
    }
    return result;
  }

 private:
  std::string bytes_;
  std::vector<std::pair<size_t, size_t>> sizes_;  // Of key and value of each row.
};

class ReadAhead {
 public:
  // Reads what follows where `it` stands. REQUIRES: it outlives this.
  explicit ReadAhead(rocksdb::Iterator* it);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The next rows, good until the next call; nullptr after the last, or when `it` has failed.
  const RowBlock* Next();

 private:
  static constexpr size_t kBlocks = 4;

  void Run();

  rocksdb::Iterator* const it_;
  std::array<RowBlock, kBlocks> blocks_;
  RowBlock* shown_ = nullptr;  // What Next returned last.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RowBlock*> free_;  // Guarded by mutex_, as are the next three.
  std::deque<RowBlock*> full_;
  bool finished_ = false;  // Nothing is added to `full_` any more.
  bool stopped_ = false;   // Nobody takes it.

  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_READ_AHEAD_H_
