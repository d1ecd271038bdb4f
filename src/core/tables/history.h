// History: the last tokens that their holders did not end in time, for operators.
//
// Thread: loop. Oldest first out, alike in memory and ledger. A batch has blocks of entries
// (ledger/history_entry.h).
#ifndef NOWCALLS_CORE_TABLES_HISTORY_H_
#define NOWCALLS_CORE_TABLES_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "ledger/commit_batch.h"
#include "ledger/history_entry.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

struct HistoryPage {
  std::vector<const ledger::HistoryEntry*> entries;  // Valid until the history next changes.
  uint64_t next_cursor = 0;                          // 0: nothing is left.
};

class History {
 public:
  // Holds the last `entries_max` entries; 0: none. Whole blocks add less than as many again, and
  // less than kHistoryBlockMax, to entries added here.
  explicit History(uint32_t entries_max);

  // A block of the ledger, by ascending sequence. kCorruption: an entry is missing or out of order.
  Status Load(ledger::HistoryBlock block);

  // Sets the entry's sequence.
  void Add(ledger::HistoryEntry entry);
  // Records changes since the last call. Call before the seal.
  void Record(ledger::CommitBatch* batch);
  // Of the next Record; one more an entry in a block with parameters.
  size_t unrecorded_bytes() const { return unrecorded_bytes_; }

  bool has_surplus() const;
  // Drops and records surplus blocks, of `entries_max` entries or a little more.
  void DropSurplus(size_t entries_max, ledger::CommitBatch* batch);

  // Newest first, before the sequence `cursor`; 0: from the newest.
  HistoryPage Page(uint64_t cursor, uint32_t limit) const;

  size_t size() const { return size_; }  // Entries.
  // Oldest first, none empty.
  const std::deque<ledger::HistoryBlock>& blocks() const { return blocks_; }

 private:
  uint64_t first_sequence() const { return next_sequence_ - size_; }
  void DropOldest();
  void RecordDrops(ledger::CommitBatch* batch);

  const uint32_t entries_max_;
  const size_t block_max_;  // Entries that a new block has at most.
  uint64_t next_sequence_ = 1;
  std::deque<ledger::HistoryBlock> blocks_;
  size_t size_ = 0;
  size_t unrecorded_ = 0;  // Blocks, the last ones, of which the ledger does not know.
  size_t unrecorded_bytes_ = 0;
  std::vector<uint64_t> dropped_;  // Blocks of the ledger whose drop is not recorded.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_HISTORY_H_
