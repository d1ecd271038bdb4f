#include "core/token_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace nowcalls::core {
namespace {

constexpr size_t kIndexBucketsMin = 1024;

// The index grows when more than 3/4 of it is used.
bool IsFull(size_t used, size_t buckets) { return used * 4 > buckets * 3; }

}  // namespace

TokenSlot TokenTable::Insert(TokenId id, uint64_t fence) {
  if (IsFull(size_ + size_t{1}, index_.size())) {
    Rehash(std::max(kIndexBucketsMin, index_.size() * 2));
  }
  const TokenSlot slot = TakeSlot();
  TokenEntry& entry = at(slot);
  entry = TokenEntry{};
  entry.fence = fence;
  IndexInsert(HashOf(id), slot);
  ++size_;
  return slot;
}

void TokenTable::Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session) {
  Append(&all_, TokenOrder::kAll, slot);
  Append(of_flow, TokenOrder::kFlow, slot);
  Append(of_session, TokenOrder::kSession, slot);
}

TokenSlot TokenTable::Find(TokenId id, uint64_t fence) const {
  if (index_.empty()) return kNoToken;
  const size_t mask = index_.size() - 1;
  const uint32_t hash = HashOf(id);
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const IndexEntry& candidate = index_[i];
    if (candidate.slot == kNoToken) return kNoToken;
    if (candidate.hash == hash && at(candidate.slot).fence == fence) return candidate.slot;
  }
}

void TokenTable::Erase(TokenSlot slot, TokenId id, TokenList* of_flow, TokenList* of_session) {
  TokenEntry& entry = at(slot);
  NOWCALLS_CHECK(entry.fence != 0);
  for (TokenCursor* cursor : cursors_) {
    if (cursor->next == slot) cursor->next = entry.next(cursor->order);
  }
  IndexErase(HashOf(id), slot);
  Unlink(&all_, TokenOrder::kAll, slot);
  Unlink(of_flow, TokenOrder::kFlow, slot);
  Unlink(of_session, TokenOrder::kSession, slot);
  --size_;
  entry.fence = 0;
  entry.links[0].next = free_;
  free_ = slot;
}

size_t TokenTable::MemoryBytes() const {
  return chunks_.size() * kChunkSize * sizeof(TokenEntry) + index_.capacity() * sizeof(IndexEntry);
}

void TokenTable::Reserve(uint32_t tokens) {
  const size_t buckets = std::bit_ceil(tokens + tokens / size_t{3} + 1);
  if (buckets > index_.size()) Rehash(std::max(kIndexBucketsMin, buckets));
}

void TokenTable::Detach(TokenCursor* cursor) { std::erase(cursors_, cursor); }

TokenSlot TokenTable::TakeSlot() {
  if (free_ != kNoToken) {
    const TokenSlot slot = free_;
    free_ = at(slot).links[0].next;
    return slot;
  }
  if (slots_used_ == chunks_.size() * kChunkSize) {
    chunks_.push_back(std::make_unique<TokenEntry[]>(kChunkSize));
  }
  return slots_used_++;
}

void TokenTable::IndexInsert(uint32_t hash, TokenSlot slot) {
  const size_t mask = index_.size() - 1;
  size_t i = hash & mask;
  while (index_[i].slot != kNoToken) i = (i + 1) & mask;
  index_[i] = {hash, slot};
}

// Linear probing without tombstones: entries behind the hole move back when their probe passed it
// (Knuth, TAOCP 6.4, algorithm R).
void TokenTable::IndexErase(uint32_t hash, TokenSlot slot) {
  const size_t mask = index_.size() - 1;
  size_t hole = hash & mask;
  while (index_[hole].slot != slot) {
    NOWCALLS_CHECK(index_[hole].slot != kNoToken);
    hole = (hole + 1) & mask;
  }
  for (size_t i = (hole + 1) & mask; index_[i].slot != kNoToken; i = (i + 1) & mask) {
    const size_t home = index_[i].hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    index_[hole] = index_[i];
    hole = i;
  }
  index_[hole] = IndexEntry{};
}

void TokenTable::Rehash(size_t buckets) {
  std::vector<IndexEntry> old(buckets);
  old.swap(index_);
  for (const IndexEntry& entry : old) {
    if (entry.slot != kNoToken) IndexInsert(entry.hash, entry.slot);
  }
}

void TokenTable::Append(TokenList* list, TokenOrder order, TokenSlot slot) {
  const auto which = static_cast<size_t>(order);
  at(slot).links[which] = {list->tail, kNoToken};
  if (list->tail == kNoToken) {
    list->head = slot;
  } else {
    at(list->tail).links[which].next = slot;
  }
  list->tail = slot;
  ++list->size;
}

void TokenTable::Unlink(TokenList* list, TokenOrder order, TokenSlot slot) {
  const auto which = static_cast<size_t>(order);
  const TokenLink link = at(slot).links[which];
  if (link.previous == kNoToken) {
    list->head = link.next;
  } else {
    at(link.previous).links[which].next = link.next;
  }
  if (link.next == kNoToken) {
    list->tail = link.previous;
  } else {
    at(link.next).links[which].previous = link.previous;
  }
  NOWCALLS_CHECK(list->size > 0);
  --list->size;
}

}  // namespace nowcalls::core
