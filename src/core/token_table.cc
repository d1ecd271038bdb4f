#include "core/token_table.h"

#include <algorithm>

#include "base/check.h"

namespace nowcalls::core {

TokenSlot TokenTable::Insert(TokenId id, uint64_t fence) {
  const TokenSlot slot = TakeSlot();
  TokenEntry& entry = at(slot);
  entry = TokenEntry{};
  entry.fence = fence;
  index_.Insert(id, slot);
  ++size_;
  return slot;
}

void TokenTable::Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session) {
  Append(&all_, TokenOrder::kAll, slot);
  Append(of_flow, TokenOrder::kFlow, slot);
  Append(of_session, TokenOrder::kSession, slot);
}

TokenSlot TokenTable::Find(TokenId id, uint64_t fence) const {
  return index_.Find(id, [&](TokenSlot slot) { return at(slot).fence == fence; });
}

void TokenTable::Erase(TokenSlot slot, TokenId id, TokenList* of_flow, TokenList* of_session) {
  TokenEntry& entry = at(slot);
  NOWCALLS_CHECK(entry.fence != 0);
  for (TokenCursor* cursor : cursors_) {
    if (cursor->next == slot) cursor->next = entry.next(cursor->order);
  }
  index_.Erase(id, slot);
  Unlink(&all_, TokenOrder::kAll, slot);
  Unlink(of_flow, TokenOrder::kFlow, slot);
  Unlink(of_session, TokenOrder::kSession, slot);
  --size_;
  entry.fence = 0;
  entry.links[0].next = free_;
  free_ = slot;
}

size_t TokenTable::MemoryBytes() const {
  return chunks_.size() * kChunkSize * sizeof(TokenEntry) + index_.MemoryBytes();
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
