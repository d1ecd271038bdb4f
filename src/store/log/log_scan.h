// LogScan: finds where a log ends, from its bytes.
//
// A log is blocks of 32 KiB. A record, which is one batch, is one piece or several. No piece
// crosses a block. A piece is a masked CRC-32C (4 bytes), a length (2) and a type (1), both numbers
// little-endian, then the bytes. The checksum covers type and bytes. Zeros fill a block with less
// room than such a header.
//
// The file of a log may be longer than the log, by zeros (spare_logs.h). So a power cut leaves the
// write that was under way not only cut short: any of its sectors may still be zeros while others
// behind them are written.
//
// A record behind such an end proves damage. But not every sound checksum is a record: a batch
// holds bytes that a client chose, 8 in a row of any value (a request id), which is room for the
// header of a piece without bytes. So a record behind the end of a log must begin like a batch. If
// the records before have numbers, it must have one that does not follow theirs: the next batch is
// the one that was cut off. A record of a manifest, which holds next to nothing of clients, must
// have the length of one.
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

// The batches of a log, in the order of its records. Records without a number do not count.
struct BatchRun {
  // The first record whose number is not one more than that of the record before.
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
  // A disk writes so many bytes as a whole, or a multiple of them.
  static constexpr uint64_t kSectorBytes = 512;

  // Where the next piece begins if the one before ends at `at`.
  static uint64_t SkipPadding(uint64_t at);
  // `covered` is the type and the bytes of a piece.
  static uint32_t MaskedChecksum(std::string_view covered);

  enum class Kind { kLog, kManifest };  // A manifest's records have no numbers.

  // `file` outlives it.
  LogScan(const rocksdb::FSRandomAccessFile* file, Kind kind);

  // Moves the end behind every complete record that follows it, also those written since.
  rocksdb::IOStatus Advance();
  // Behind the last record before the first one that is not complete and sound.
  uint64_t end() const { return end_; }
  // Where the last record before the end begins, or the padding before it; 0 if there is none.
  uint64_t last_begin() const { return last_begin_; }
  // The batches up to the end.
  const BatchRun& batches() const { return batches_; }

  enum class Rest {
    kNothing,   // Zeros, or no byte.
    kCutShort,  // The beginning of one record.
    kTorn,      // One record, in which at least one sector is zeros.
    kRecord,    // A complete record, behind bytes that are none: damage.
    kDamaged,   // Anything else.
  };
  // Tells what is behind end() in a file of `size` bytes. `content_end` gets the place behind the
  // last byte that is not zero, or end(). REQUIRES: Advance was called.
  rocksdb::IOStatus LookBehind(uint64_t size, Rest* rest, uint64_t* content_end);
  // `content_end` alone.
  rocksdb::IOStatus FindContentEnd(uint64_t size, uint64_t* content_end) const;

  struct Record {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string bytes;
    std::optional<uint64_t> batch;  // Its number, if it has one.
  };
  // Finds the first complete record that begins at `from`, or behind bytes that are none, before
  // `to`. Does not move the end.
  rocksdb::IOStatus NextRecord(uint64_t from, uint64_t to, Record* record, bool* found);

 private:
  struct Piece {
    bool sound = false;
    int type = 0;
    uint64_t end = 0;          // As its header says.
    std::string_view payload;  // Of a sound piece; valid until the next ReadBlock.
  };

  // Reads the block that holds `at` into block_, once until Forget.
  rocksdb::IOStatus ReadBlock(uint64_t at);
  void Forget() { block_at_ = UINT64_MAX; }
  rocksdb::IOStatus ReadPiece(uint64_t at, Piece* piece);
  // `end` gets the end of the complete record at `at`. 0: there is none, and failed_at_ is where
  // its first unsound piece is.
  rocksdb::IOStatus ReadRecord(uint64_t at, uint64_t* end);
  // Finds the first bytes that can only be a record, see above. `place`, if not null, gets where.
  rocksdb::IOStatus FindRecord(uint64_t from, uint64_t to, bool* found, uint64_t* place = nullptr);
  // Whether the record that was read last can only be one.
  bool IsRecord() const;
  // The number in the log data of the record that was read last.
  std::optional<uint64_t> NumberRead() const;
  rocksdb::IOStatus FindZeroSector(uint64_t from, uint64_t to, bool* found);
  rocksdb::IOStatus IsCutShort(uint64_t content_end, bool* cut_short);

  const rocksdb::FSRandomAccessFile* const file_;
  const Kind kind_;
  uint64_t end_ = 0;
  uint64_t last_begin_ = 0;
  uint64_t failed_at_ = 0;
  // Of the record that was read last: its first and last bytes, its length, and where all of its
  // bytes go, if anywhere.
  std::string head_;
  std::string tail_;
  uint64_t bytes_read_ = 0;
  std::string* bytes_ = nullptr;
  BatchRun batches_;

  std::vector<char> block_;
  uint64_t block_at_ = UINT64_MAX;  // Where block_ begins in the file.
  uint64_t block_bytes_ = 0;
};

// Moves the end of `scan` behind the last record of a file that may be written meanwhile, and tells
// what is behind it, as LookBehind does. `size` returns the length of the file, or NotFound when it
// is gone; then nothing is behind.
//
// The rest is looked at before the end is looked for. So a writer that appends one record after the
// other leaves no rest but kNothing and kCutShort, as a rule. kRecord is damage: it is returned
// only when the end did not move meanwhile.
rocksdb::IOStatus FollowEnd(LogScan* scan,
                            const std::function<rocksdb::IOStatus(uint64_t* bytes)>& size,
                            LogScan::Rest* rest, uint64_t* content_end);

// Whether any of the first `size` bytes of `file` is not zero. In a log that holds anything, one of
// the very first is not.
rocksdb::IOStatus HasNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t size, bool* found);

// `end` gets the place behind the last of the first `size` bytes of `file` that is not zero, or
// `from` if that is larger.
rocksdb::IOStatus FindLastNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t from,
                                  uint64_t size, uint64_t* end);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_SCAN_H_
