#include "core/tables/history.h"

#include <algorithm>
#include <string>
#include <utility>

namespace nowcalls::core {
namespace {

// Of a record of a block: type, key, size and the value's parts of a fixed size.
size_t FixedBytes(size_t entries) {
  if (entries == 0) return 0;
  return 1 + ledger::kHistoryKeyBytes + sizeof(uint32_t) + ledger::HistoryFixedBytes(entries);
}

size_t BytesOf(const ledger::HistoryBlock& block) {
  size_t bytes = FixedBytes(block.size());
  for (const ledger::HistoryEntry& entry : block) bytes += ledger::HistoryTextBytes(entry);
  return bytes;
}

}  // namespace

History::History(uint32_t entries_max)
    : entries_max_(entries_max),
      block_max_(std::min<size_t>(entries_max, ledger::kHistoryBlockMax)) {}

Status History::Load(ledger::HistoryBlock block) {
  // Also against the block before: a lost row of the ledger shows as a gap.
  const ledger::HistoryEntry* before = blocks_.empty() ? nullptr : &blocks_.back().back();
  for (const ledger::HistoryEntry& entry : block) {
    const std::string where = "history: entry " + std::to_string(entry.sequence);
    if (before != nullptr && entry.sequence != before->sequence + 1) {
      return Status::Corruption(where + " follows entry " + std::to_string(before->sequence) +
                                ": entries are missing");
    }
    before = &entry;
  }
  next_sequence_ = block.back().sequence + 1;
  block.shrink_to_fit();
  size_ += block.size();
  blocks_.push_back(std::move(block));
  return {};
}

void History::Add(ledger::HistoryEntry entry) {
  if (entries_max_ == 0) return;
  // A recorded block never grows: its row is in the ledger.
  if (unrecorded_ == 0 || blocks_.back().size() == block_max_) {
    blocks_.emplace_back();
    ++unrecorded_;
  }
  ledger::HistoryBlock& block = blocks_.back();
  entry.sequence = next_sequence_++;
  unrecorded_bytes_ +=
      ledger::HistoryTextBytes(entry) + FixedBytes(block.size() + 1) - FixedBytes(block.size());
  block.push_back(std::move(entry));
  ++size_;
  // A mass of ends may displace entries of its own batch; these are never written.
  if (has_surplus()) DropOldest();
}

void History::Record(ledger::CommitBatch* batch) {
  // The last `unrecorded_` blocks are new.
  RecordDrops(batch);
  for (size_t i = blocks_.size() - unrecorded_; i < blocks_.size(); ++i) {
    blocks_[i].shrink_to_fit();
    batch->HistoryAdded(blocks_[i]);
  }
  unrecorded_ = 0;
  unrecorded_bytes_ = 0;
}

bool History::has_surplus() const {
  return !blocks_.empty() && size_ - blocks_.front().size() >= entries_max_;
}

void History::DropSurplus(size_t entries_max, ledger::CommitBatch* batch) {
  if (!has_surplus()) return;
  const size_t before = size_;
  while (has_surplus() && before - size_ < entries_max) DropOldest();
  RecordDrops(batch);
}

HistoryPage History::Page(uint64_t cursor, uint32_t limit) const {
  HistoryPage page;
  if (blocks_.empty()) return page;
  const uint64_t oldest = first_sequence();
  // The cursor's entries may have been dropped since, and a peer may invent a cursor: clamp it.
  uint64_t before = next_sequence_;
  if (cursor != 0) before = std::clamp(cursor, oldest, next_sequence_);
  const uint64_t first = before - std::min<uint64_t>(limit, before - oldest);
  page.entries.reserve(before - first);
  // From the block that holds the newest wanted entry backwards.
  auto behind = std::upper_bound(
      blocks_.begin(), blocks_.end(), before - 1,
      [](uint64_t n, const ledger::HistoryBlock& block) { return n < block.front().sequence; });
  for (uint64_t n = before; n > first;) {
    const ledger::HistoryBlock& block = *--behind;
    const uint64_t begin = block.front().sequence;
    for (; n > std::max(first, begin); --n) page.entries.push_back(&block[n - 1 - begin]);
  }
  if (first > oldest) page.next_cursor = first;
  return page;
}

// Only a block that the ledger holds needs a record of its drop.
void History::DropOldest() {
  const ledger::HistoryBlock& oldest = blocks_.front();
  if (blocks_.size() > unrecorded_) {
    dropped_.push_back(oldest.front().sequence);
  } else {
    --unrecorded_;
    unrecorded_bytes_ -= BytesOf(oldest);
  }
  size_ -= oldest.size();
  blocks_.pop_front();
}

void History::RecordDrops(ledger::CommitBatch* batch) {
  for (const uint64_t first_sequence : dropped_) batch->HistoryDropped(first_sequence);
  dropped_.clear();
}

}  // namespace nowcalls::core
