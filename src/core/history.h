// History: the last ends of tokens that their holders did not bring about in time, for operators.
//
// Thread: loop. Bounded, oldest first out, in memory and in the ledger alike. A batch holds the
// entries of the tokens that it ends, so after any crash the history is that of the batches that
// survived. Entries are recorded when the batch is sealed: an entry that a mass reclaim displaces
// before that is never written.
//
// Entries come and go in blocks. A block is one row of the ledger (ledger/history_entry.h); a batch
// adds its entries in one or more blocks. A block is dropped as a whole, once the entries behind it
// are enough: so up to a block more than the wanted number is held.
#ifndef NOWCALLS_CORE_HISTORY_H_
#define NOWCALLS_CORE_HISTORY_H_

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
  // Holds at least the last `entries_max` entries, and the entries before them in the same block:
  // less than twice as many, and less than kHistoryBlockMax more, of those added here. 0: none.
  explicit History(uint32_t entries_max);

  // A block of the ledger, by ascending sequence. kCorruption when an entry is missing or out of
  // order.
  Status Load(ledger::HistoryBlock block);

  // Gives the entry the next sequence.
  void Add(ledger::HistoryEntry entry);
  // Records what came and went since the last call, for the batch that is about to be sealed.
  void Record(ledger::CommitBatch* batch);
  // How many bytes Record will append for what was added, but for one an entry beside parameters.
  size_t unrecorded_bytes() const { return unrecorded_bytes_; }

  // Whether the oldest block is not needed: a ledger may hold more than this server wants.
  bool has_surplus() const;
  // Drops blocks that are not needed, and records that, until they held `entries_max` or more.
  void DropSurplus(size_t entries_max, ledger::CommitBatch* batch);

  // Newest first: the entries before the sequence `cursor`, or from the newest with 0.
  HistoryPage Page(uint64_t cursor, uint32_t limit) const;

  size_t size() const { return size_; }  // Entries.
  // Oldest first, none of them empty.
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

#endif  // NOWCALLS_CORE_HISTORY_H_
