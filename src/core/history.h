// History: the last ends of tokens that their holders did not bring about in time, for operators.
//
// Thread: loop. Bounded, oldest first out, in memory and in the ledger alike. What a batch ends is
// told by that batch, so that after any crash the history is that of the batches that survived; but
// the entries are recorded only when the batch is sealed, so that those a mass reclaim displaces
// within one batch are never written: a batch adds and drops at most what the history holds.
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

  // Gives the entry the next sequence.
  void Add(ledger::HistoryEntry entry);
  // Records what came and went since the last call, for the batch that is about to be sealed.
  void Record(ledger::CommitBatch* batch);
  // How many bytes Record will append for what was added.
  size_t unrecorded_bytes() const { return unrecorded_bytes_; }

  // A ledger may hold more than this server keeps. Drops and records at most `entries_max` of what
  // is too much.
  bool has_surplus() const { return entries_.size() > entries_max_; }
  void DropSurplus(uint32_t entries_max, ledger::CommitBatch* batch);

  // Newest first: the entries before the sequence `cursor`, or from the newest with 0.
  HistoryPage Page(uint64_t cursor, uint32_t limit) const;

  size_t size() const { return entries_.size(); }
  // Oldest first.
  const std::deque<ledger::HistoryEntry>& entries() const { return entries_; }

 private:
  uint64_t first_sequence() const { return next_sequence_ - entries_.size(); }
  void DropOldest();
  void RecordDrops(ledger::CommitBatch* batch);

  const uint32_t entries_max_;
  uint64_t next_sequence_ = 1;
  std::deque<ledger::HistoryEntry> entries_;
  // What the ledger holds once all that was recorded is durable: entries from the first number up
  // to, not including, the second.
  uint64_t recorded_first_ = 1;
  uint64_t recorded_end_ = 1;
  size_t unrecorded_bytes_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HISTORY_H_
