#include "core/history.h"

#include <algorithm>
#include <string>
#include <utility>

namespace nowcalls::core {
namespace {

// Of a record of an entry: type, key, size and what is of a fixed size in the value.
constexpr size_t kRecordBytes = 1 + ledger::kHistoryKeyBytes + 2 + ledger::kHistoryFixedBytes;

size_t BytesOf(const ledger::HistoryEntry& entry) {
  return kRecordBytes + entry.name_space.size() + entry.client_id.size() + entry.note.size();
}

}  // namespace

Status History::Load(const ledger::HistoryEntry& entry) {
  const std::string where = "history: entry " + std::to_string(entry.sequence);
  if (entries_.empty()) {
    recorded_first_ = entry.sequence;
  } else {
    if (entry.sequence != next_sequence_) {
      return Status::Corruption(where + " follows entry " + std::to_string(next_sequence_ - 1) +
                                ": entries are missing");
    }
    if (entry.ended_ms < entries_.back().ended_ms) {
      return Status::Corruption(where + " tells of an end before that of the entry before it");
    }
  }
  next_sequence_ = recorded_end_ = entry.sequence + 1;
  entries_.push_back(entry);
  return {};
}

void History::Add(ledger::HistoryEntry entry) {
  if (entries_max_ == 0) return;
  entry.sequence = next_sequence_++;
  unrecorded_bytes_ += BytesOf(entry);
  entries_.push_back(std::move(entry));
  if (has_surplus()) DropOldest();
}

void History::Record(ledger::CommitBatch* batch) {
  RecordDrops(batch);
  const uint64_t first = std::max(recorded_end_, first_sequence());
  for (uint64_t n = first; n < next_sequence_; ++n) {
    batch->HistoryAdded(entries_[n - first_sequence()]);
  }
  recorded_first_ = first_sequence();
  recorded_end_ = next_sequence_;
  unrecorded_bytes_ = 0;
}

void History::DropSurplus(uint32_t entries_max, ledger::CommitBatch* batch) {
  if (!has_surplus()) return;
  for (uint32_t n = 0; n < entries_max && has_surplus(); ++n) DropOldest();
  RecordDrops(batch);
}

HistoryPage History::Page(uint64_t cursor, uint32_t limit) const {
  HistoryPage page;
  if (entries_.empty()) return page;
  const uint64_t oldest = first_sequence();
  // Entries that the cursor stood at may have been dropped since, and a cursor may be made up.
  uint64_t before = next_sequence_;
  if (cursor != 0) before = std::clamp(cursor, oldest, next_sequence_);
  const uint64_t first = before - std::min<uint64_t>(limit, before - oldest);
  page.entries.reserve(before - first);
  for (uint64_t n = before; n > first; --n) page.entries.push_back(&entries_[n - 1 - oldest]);
  if (first > oldest) page.next_cursor = first;
  return page;
}

void History::DropOldest() {
  if (first_sequence() >= recorded_end_) unrecorded_bytes_ -= BytesOf(entries_.front());
  entries_.pop_front();
}

// Of those dropped only what the ledger holds needs a record.
void History::RecordDrops(ledger::CommitBatch* batch) {
  const uint64_t end = std::min(first_sequence(), recorded_end_);
  for (; recorded_first_ < end; ++recorded_first_) batch->HistoryDropped(recorded_first_);
}

}  // namespace nowcalls::core
