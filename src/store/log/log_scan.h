// LogScan: the end of a log, found from its bytes. Format: log_scan.cc.
//
// Thread: one.
#ifndef NOWCALLS_STORE_LOG_LOG_SCAN_H_
#define NOWCALLS_STORE_LOG_LOG_SCAN_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::store {

// Records without a number do not count.
struct BatchRun {
  // The first number that does not follow its predecessor.
  struct Break {
    uint64_t at = 0;  // Where it begins in the file.
    uint64_t before = 0;
    uint64_t found = 0;
  };

  void Add(uint64_t number, uint64_t at);

  bool empty = true;
  uint64_t first = 0;
  uint64_t last = 0;
  std::optional<Break> broken;
};

class LogScan {
 public:
  static constexpr uint64_t kBlockBytes = 32768;
  static constexpr uint64_t kSectorBytes = 512;

  // Begin of the piece behind one that ends at `at`.
  static uint64_t SkipPadding(uint64_t at);
  // `covered`: type and bytes of a piece.
  static uint32_t MaskedChecksum(std::string_view covered);

  enum class Kind { kLog, kManifest };  // A manifest's records have no numbers.

  // `file` outlives it.
  LogScan(const rocksdb::FSRandomAccessFile* file, Kind kind);

  // Moves the end behind every complete record.
  rocksdb::IOStatus Advance();
  // Behind the last record of the sound prefix.
  uint64_t end() const { return end_; }
  // Begin of the last record before the end, or of padding before it; 0: none.
  uint64_t last_begin() const { return last_begin_; }
  const BatchRun& batches() const { return batches_; }

  enum class Rest {
    kNothing,   // Zeros, or no byte.
    kCutShort,  // The beginning of one record.
    kTorn,      // One record, in which at least one sector is zeros.
    kRecord,    // A complete record, behind bytes that are none: damage.
    kDamaged,   // Anything else.
  };
  // Classifies the bytes behind end() in a file of `size` bytes. `content_end`: behind the last
  // byte that is not zero, or end(). REQUIRES: Advance.
  rocksdb::IOStatus LookBehind(uint64_t size, Rest* rest, uint64_t* content_end);
  // Only `content_end`.
  rocksdb::IOStatus FindContentEnd(uint64_t size, uint64_t* content_end) const;

  struct Record {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string bytes;
    std::optional<uint64_t> batch;  // Its number, if it has one.
  };
  // The first complete record in [from, to) at `from` or behind garbage. Does not move the end.
  rocksdb::IOStatus NextRecord(uint64_t from, uint64_t to, Record* record, bool* found);

 private:
  struct Piece {
    bool sound = false;
    int type = 0;
    uint64_t end = 0;          // As its header says.
    std::string_view payload;  // Of a sound piece; valid until the next ReadBlock.
  };

  rocksdb::IOStatus ReadBlock(uint64_t at);
  void Forget() { block_at_ = UINT64_MAX; }
  rocksdb::IOStatus ReadPiece(uint64_t at, Piece* piece);
  rocksdb::IOStatus ReadRecord(uint64_t at, uint64_t* end);
  rocksdb::IOStatus FindRecord(uint64_t from, uint64_t to, bool* found, uint64_t* place = nullptr);
  bool IsRecord() const;
  std::optional<uint64_t> NumberRead() const;
  rocksdb::IOStatus FindZeroSector(uint64_t from, uint64_t to, bool* found);
  rocksdb::IOStatus IsCutShort(uint64_t content_end, bool* cut_short);

  const rocksdb::FSRandomAccessFile* const file_;
  const Kind kind_;
  uint64_t end_ = 0;
  uint64_t last_begin_ = 0;
  uint64_t failed_at_ = 0;
  // Of the last-read record: first bytes, last bytes, length; copy target, if any.
  std::string head_;
  std::string tail_;
  uint64_t bytes_read_ = 0;
  std::string* bytes_ = nullptr;
  BatchRun batches_;

  std::vector<char> block_;
  uint64_t block_at_ = UINT64_MAX;  // Where block_ begins in the file.
  uint64_t block_bytes_ = 0;
};

// Advances `scan` in a file that may be written meanwhile, and classifies the rest. `size` returns
// the length, or NotFound: nothing follows. kRecord is damage.
rocksdb::IOStatus FollowEnd(LogScan* scan,
                            const std::function<rocksdb::IOStatus(uint64_t* bytes)>& size,
                            LogScan::Rest* rest, uint64_t* content_end);

// Whether any of the first `size` bytes is not zero.
rocksdb::IOStatus HasNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t size, bool* found);

// `end`: max(from, behind the last non-zero of the first `size` bytes).
rocksdb::IOStatus FindLastNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t from,
                                  uint64_t size, uint64_t* end);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_SCAN_H_
