// History: the last ends of tokens that their holders did not bring about in time, for operators.
//
// Thread: loop. Bounded, oldest first out, in memory and in the ledger alike: an entry is added by
// the batch that ends its token, and the one it displaces is dropped by the same batch. So after
// any crash the ledger's history is that of the batches that survived. A mass reclaim writes one
// entry for each token it ends: each of them is among the newest when its batch is sealed, and what
// a batch ends must be told by that batch (src/README.md).
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
  // Keeps the last `entries_max`; 0: none.
  explicit History(uint32_t entries_max) : entries_max_(entries_max) {}

  // An entry of the ledger, by ascending sequence. kCorruption when one is missing or out of order.
  Status Load(const ledger::HistoryEntry& entry);

  // Gives the entry the next sequence and records it.
  void Add(ledger::HistoryEntry entry, ledger::CommitBatch* batch);

  // A ledger may hold more than this server keeps. Drops at most `entries_max` of what is too much.
  bool has_surplus() const { return entries_.size() > entries_max_; }
  void DropSurplus(uint32_t entries_max, ledger::CommitBatch* batch);

  // Newest first: the entries before the sequence `cursor`, or from the newest with 0.
  HistoryPage Page(uint64_t cursor, uint32_t limit) const;

  size_t size() const { return entries_.size(); }
  // Oldest first.
  const std::deque<ledger::HistoryEntry>& entries() const { return entries_; }

 private:
  void DropOldest(ledger::CommitBatch* batch);

  const uint32_t entries_max_;
  uint64_t next_sequence_ = 1;
  std::deque<ledger::HistoryEntry> entries_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HISTORY_H_
