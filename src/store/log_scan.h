// LogScan: where a log ends, told from its bytes.
//
// Thread: one. A log is blocks of 32 KiB. A record, which is one batch, is one piece or several,
// none of which crosses a block: a masked CRC-32C (4 bytes), a length (2) and a type (1), both
// numbers little-endian, then the bytes, which the checksum covers together with the type. Zeros
// fill a block with less room than such a header.
//
// The files of logs may be longer than what was written to them, by zeros (spare_logs.h). So what a
// power cut left of the write that was under way is not only a record cut short: of the sectors
// that it covers, any may still be zeros while others behind them are written.
//
// Damage is told from such an end by a record that stands behind it. Not every sound checksum is
// one: a batch holds bytes that a client chose, 8 in a row of any value (a request id), which is
// room for the header of a piece without bytes, at any place of a batch that was cut off. So such a
// record of a log must begin like a batch and, if those before have numbers, have one that does not
// follow theirs: the next batch is the one that was cut off. Of a manifest, which has next to
// nothing of clients, it must have the length of a record.
#ifndef NOWCALLS_STORE_LOG_SCAN_H_
#define NOWCALLS_STORE_LOG_SCAN_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nowcalls::store {

// The batches of a log, in the order of its records. Records without a number are passed over.
struct BatchRun {
  // The first record whose number does not follow the one before it, by 1.
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
  // What a disk writes as a whole; of larger ones it is a part.
  static constexpr uint64_t kSectorBytes = 512;

  // Where a piece begins that follows what ends at `at`.
  static uint64_t SkipPadding(uint64_t at);
  // Of the type and the bytes of a piece.
  static uint32_t MaskedChecksum(std::string_view covered);

  enum class Kind { kLog, kManifest };  // A manifest's records have no numbers.

  // `file` outlives it.
  LogScan(const rocksdb::FSRandomAccessFile* file, Kind kind);

  // Moves the end behind every complete record that follows it, also what was written since.
  rocksdb::IOStatus Advance();
  // Behind the last record before the first one that is not complete and sound.
  uint64_t end() const { return end_; }
  // Where the last record before the end begins, or the padding before it; 0 if there is none.
  uint64_t last_begin() const { return last_begin_; }
  // Those of the records up to the end.
  const BatchRun& batches() const { return batches_; }

  enum class Rest {
    kNothing,   // Zeros, or no byte.
    kCutShort,  // The beginning of one record.
    kTorn,      // One record, in which at least one sector is zeros.
    kRecord,    // A complete record, behind what is none: damage.
    kDamaged,   // Anything else.
  };
  // What is behind end(), in a file of `size` bytes; `content_end` is behind its last byte that is
  // not zero, or end(). Follows an Advance.
  rocksdb::IOStatus LookBehind(uint64_t size, Rest* rest, uint64_t* content_end);
  // Behind the last byte of a file of `size` bytes that is not zero, or end().
  rocksdb::IOStatus FindContentEnd(uint64_t size, uint64_t* content_end) const;

  struct Record {
    uint64_t begin = 0;
    uint64_t end = 0;
    std::string bytes;
    std::optional<uint64_t> batch;  // Its number, if it has one.
  };
  // The first complete record that begins at `from`, or that stands behind what is none and before
  // `to`. Does not move the end.
  rocksdb::IOStatus NextRecord(uint64_t from, uint64_t to, Record* record, bool* found);

 private:
  struct Piece {
    bool sound = false;
    int type = 0;
    uint64_t end = 0;          // As its header says.
    std::string_view payload;  // Until the next Load; of a sound one.
  };

  // The block that holds `at`, in block_. Loaded once until Forget.
  rocksdb::IOStatus Load(uint64_t at);
  void Forget() { loaded_ = UINT64_MAX; }
  rocksdb::IOStatus ReadPiece(uint64_t at, Piece* piece);
  // The end of the complete record at `at`; 0 if there is none, and then failed_at_ is where its
  // first unsound piece is.
  rocksdb::IOStatus ReadRecord(uint64_t at, uint64_t* end);
  // The first one that can only be a record; see above. `place`, if not null, is where it begins.
  rocksdb::IOStatus FindRecord(uint64_t from, uint64_t to, bool* found, uint64_t* place = nullptr);
  // Whether the one that was read last can only be that.
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
  std::string head_;              // The first bytes of the record that was read last.
  std::string tail_;              // And the last.
  uint64_t bytes_read_ = 0;       // So many it has.
  std::string* bytes_ = nullptr;  // Where all of its bytes go, if anywhere.
  BatchRun batches_;

  std::vector<char> block_;
  uint64_t loaded_ = UINT64_MAX;  // Where block_ begins in the file.
  uint64_t loaded_bytes_ = 0;
};

// Moves the end of `scan` behind the last record of a file that somebody may be writing, and tells
// what is behind it, as LookBehind does. `size` tells how long the file is, or NotFound when it is
// gone; then nothing is behind. What is told was there before the end was looked for, so a writer
// that appends one record after the other leaves no other rest than kNothing and kCutShort, as a
// rule. kRecord is told only when the end did not move meanwhile, and is no writer's.
rocksdb::IOStatus FollowEnd(LogScan* scan,
                            const std::function<rocksdb::IOStatus(uint64_t* bytes)>& size,
                            LogScan::Rest* rest, uint64_t* content_end);

// Whether any byte of the first `size` of `file` is not zero. In a log that holds anything it is
// one of the first.
rocksdb::IOStatus HasNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t size, bool* found);

// Behind the last byte of the first `size` of `file` that is not zero, or `from` if that is larger.
rocksdb::IOStatus FindLastNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t from,
                                  uint64_t size, uint64_t* end);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_SCAN_H_
