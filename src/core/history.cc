#include "core/history.h"

#include <algorithm>
#include <string>
#include <utility>

namespace nowcalls::core {

Status History::Load(const ledger::HistoryEntry& entry) {
  const std::string where = "history: entry " + std::to_string(entry.sequence);
  if (!entries_.empty()) {
    if (entry.sequence != next_sequence_) {
      return Status::Corruption(where + " follows entry " + std::to_string(next_sequence_ - 1) +
                                ": entries are missing");
    }
    if (entry.ended_ms < entries_.back().ended_ms) {
      return Status::Corruption(where + " tells of an end before that of the entry before it");
    }
  }
  next_sequence_ = entry.sequence + 1;
  entries_.push_back(entry);
  return {};
}

void History::Add(ledger::HistoryEntry entry, ledger::CommitBatch* batch) {
  if (entries_max_ == 0) return;
  entry.sequence = next_sequence_++;
  batch->HistoryAdded(entry);
  entries_.push_back(std::move(entry));
  if (has_surplus()) DropOldest(batch);
}

void History::DropSurplus(uint32_t entries_max, ledger::CommitBatch* batch) {
  for (uint32_t n = 0; n < entries_max && has_surplus(); ++n) DropOldest(batch);
}

HistoryPage History::Page(uint64_t cursor, uint32_t limit) const {
  HistoryPage page;
  if (entries_.empty()) return page;
  const uint64_t oldest = entries_.front().sequence;
  // Entries that the cursor stood at may have been dropped since, and a cursor may be made up.
  uint64_t before = next_sequence_;
  if (cursor != 0) before = std::clamp(cursor, oldest, next_sequence_);
  const uint64_t first = before - std::min<uint64_t>(limit, before - oldest);
  page.entries.reserve(before - first);
  for (uint64_t n = before; n > first; --n) page.entries.push_back(&entries_[n - 1 - oldest]);
  if (first > oldest) page.next_cursor = first;
  return page;
}

void History::DropOldest(ledger::CommitBatch* batch) {
  batch->HistoryDropped(entries_.front().sequence);
  entries_.pop_front();
}

}  // namespace nowcalls::core
