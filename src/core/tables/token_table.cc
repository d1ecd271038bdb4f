#include "core/tables/token_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ledger/entities.h"

namespace nowcalls::core {
namespace {

// Places of the ring in two cache lines: fences come in order, so the next are needed soon.
constexpr uint64_t kPlacesAhead = 32;

}  // namespace

TokenSlot TokenTable::Insert(uint64_t fence) {
  NOWCALLS_CHECK(fence != 0);
  const TokenSlot slot = TakeSlot();
  TokenEntry& entry = at(slot);
  entry = TokenEntry{};
  entry.fence = fence;
  // The ring has one place for each fence % kRecent: the younger token takes it.
  TokenSlot& recent = recent_[fence % kRecent];
  if (recent != kNoToken) MoveToIndexes(recent);
  recent = slot;
  PrefetchForWriting(&recent_[(fence + kPlacesAhead) % kRecent]);
  ++size_;
  return slot;
}

// REQUIRES: the token is in the ring, and a younger one takes its place. Most tokens end before
// that, and never pay for the index, where each place is a cache miss.
void TokenTable::MoveToIndexes(TokenSlot slot) {
  const TokenEntry& entry = at(slot);
  index_.Insert(FenceHash(entry.fence), slot);
  if (entry.has_request == 0) return;
  const uint64_t hash = RequestHash(entry.session_slot, RequestIdOf(slot));
  recent_requests_.Erase(InTable(hash), slot);
  by_request_.Insert(hash, slot);
}

// The places in the index are far apart in memory, so those of a group are fetched together. The
// ring stays empty: it is for tokens issued from now on.
TokenSlot TokenTable::InsertLoaded(uint64_t fence) {
  NOWCALLS_CHECK(fence != 0 && free_ == kNoToken);
  const TokenSlot slot = TakeSlot();
  at(slot).fence = fence;  // All else is as it was made.
  ++size_;
  const uint64_t hash = FenceHash(fence);
  index_.Prefetch(hash);
  loaded_group_[loaded_grouped_++] = {hash, slot};
  if (loaded_grouped_ == kGroup) IndexLoadedGroup();
  return slot;
}

void TokenTable::IndexLoadedGroup() {
  for (size_t i = 0; i < loaded_grouped_; ++i) {
    index_.Insert(loaded_group_[i].first, loaded_group_[i].second);
  }
  loaded_grouped_ = 0;
}

TokenSlot TokenTable::IndexLoaded() {
  // Fences first: the last group is not full yet.
  IndexLoadedGroup();
  const std::vector<TokenSlot> slots = std::exchange(loaded_requests_, {});
  by_request_.Reserve(slots.size());
  std::array<uint64_t, kGroup> hashes{};
  for (size_t begin = 0; begin < slots.size(); begin += kGroup) {
    const size_t end = std::min(begin + kGroup, slots.size());
    // First pass over a group: fetch its places. Second pass: compare and insert.
    for (size_t i = begin; i < end; ++i) {
      hashes[i - begin] = RequestHash(at(slots[i]).session_slot, RequestIdOf(slots[i]));
      by_request_.Prefetch(hashes[i - begin]);
    }
    for (size_t i = begin; i < end; ++i) {
      const TokenSlot slot = slots[i];
      const uint64_t hash = hashes[i - begin];
      if (ClashesWithLoaded(hash, slot)) return slot;
      by_request_.Insert(hash, slot);
    }
  }
  return kNoToken;
}

void TokenTable::Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session) {
  Append(&all_, TokenOrder::kAll, slot);
  Append(of_flow, TokenOrder::kFlow, slot);
  Append(of_session, TokenOrder::kSession, slot);
}

TokenSlot TokenTable::FindRequest(SessionSlot session, uint64_t request_id) const {
  return FindRequest(RequestHash(session, request_id), session, request_id);
}

TokenSlot TokenTable::FindRequest(uint64_t hash, SessionSlot session, uint64_t request_id) const {
  const auto is_it = [&](TokenSlot slot) { return HasRequest(slot, session, request_id); };
  // Most ids are of young tokens. Ids of older ones lie in the big index, often empty.
  const TokenSlot recent = recent_requests_.Find(InTable(hash), is_it);
  if (recent != kNoToken || by_request_.size() == 0) return recent;
  return by_request_.Find(hash, is_it);
}

void TokenTable::SetRequest(TokenSlot slot, uint64_t request_id) {
  NOWCALLS_CHECK(IsRecent(slot));
  StoreRequest(slot, request_id);
  recent_requests_.Insert(InTable(RequestHash(at(slot).session_slot, request_id)), slot);
}

void TokenTable::SetLoadedRequest(TokenSlot slot, uint64_t request_id) {
  StoreRequest(slot, request_id);
  loaded_requests_.push_back(slot);
}

void TokenTable::StoreRequest(TokenSlot slot, uint64_t request_id) {
  TokenEntry& entry = at(slot);
  NOWCALLS_CHECK(request_id != 0 && entry.has_request == 0 && entry.session_slot != kNoSession);
  RequestChunk& chunk = request_chunks_[slot.value / kChunkSize];
  if (chunk == nullptr) {
    // The first id of a chunk makes the array, so chunks without ids cost nothing.
    chunk = MakePopulated<RequestChunk::element_type>();
    ++request_chunks_made_;
  }
  (*chunk)[slot.value % kChunkSize] = request_id;
  entry.has_request = 1;
}

// Whether an indexed entry has the same session and request id, but was not issued with this one.
// `compare` never ends the search: each entry of the id must be seen.
bool TokenTable::ClashesWithLoaded(uint64_t hash, TokenSlot slot) const {
  const TokenEntry& entry = at(slot);
  bool clashes = false;
  const auto compare = [&](TokenSlot other) {
    clashes |= !ledger::MayShareRequestId(Fence{at(other).fence}, Fence{entry.fence});
  };
  ForEachOfHash(hash, entry.session_slot, RequestIdOf(slot), compare);
  return clashes;
}

uint64_t TokenTable::RequestIdOf(TokenSlot slot) const {
  return at(slot).has_request == 0
             ? 0
             : (*request_chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
}

void TokenTable::SetKey(TokenSlot slot, KeySlot key) {
  TokenEntry& entry = at(slot);
  NOWCALLS_CHECK(key != kNoKey && entry.has_key == 0);
  KeyChunk& chunk = key_chunks_[slot.value / kChunkSize];
  if (chunk == nullptr) {
    chunk = MakePopulated<KeyChunk::element_type>();
    ++key_chunks_made_;
  }
  (*chunk)[slot.value % kChunkSize] = key;
  entry.has_key = 1;
}

void TokenTable::Erase(TokenSlot slot, TokenList* of_flow, TokenList* of_session) {
  TokenEntry& entry = at(slot);
  NOWCALLS_CHECK(entry.fence != 0);
  // Cursors leave the entry while its links still lead on.
  for (TokenCursor* cursor : cursors_) {
    if (cursor->next == slot) cursor->next = entry.next(cursor->order);
  }
  // The entry is either in the ring or in the index, and so is its request id.
  const bool recent = IsRecent(slot);
  if (recent) {
    recent_[entry.fence % kRecent] = kNoToken;
  } else {
    index_.Erase(FenceHash(entry.fence), slot);
  }
  if (entry.has_request != 0) {
    const uint64_t hash = RequestHash(entry.session_slot, RequestIdOf(slot));
    if (recent) {
      recent_requests_.Erase(InTable(hash), slot);
    } else {
      by_request_.Erase(hash, slot);
    }
  }
  Unlink(&all_, TokenOrder::kAll, slot);
  Unlink(of_flow, TokenOrder::kFlow, slot);
  Unlink(of_session, TokenOrder::kSession, slot);
  --size_;
  // Fence 0 marks a free slot.
  entry.fence = 0;
  entry.links[0].next = free_;
  free_ = slot;
}

size_t TokenTable::MemoryBytes() const {
  return chunks_.size() * kChunkSize * sizeof(TokenEntry) +
         request_chunks_made_ * kChunkSize * sizeof(uint64_t) +
         key_chunks_made_ * kChunkSize * sizeof(KeySlot) + kRecent * sizeof(TokenSlot) +
         recent_requests_.MemoryBytes() + index_.MemoryBytes() + by_request_.MemoryBytes();
}

void TokenTable::Detach(TokenCursor* cursor) { std::erase(cursors_, cursor); }

TokenSlot TokenTable::TakeSlot() {
  if (free_ != kNoToken) {
    const TokenSlot slot = free_;
    free_ = at(slot).links[0].next;
    return slot;
  }
  // No freed slot: a new one. A chunk is 1 MiB, a step that a reader of the process size does not
  // notice.
  if (slots_used_ == chunks_.size() * kChunkSize) {
    chunks_.push_back(MakePopulated<EntryChunk::element_type>());
    request_chunks_.emplace_back();
    key_chunks_.emplace_back();
  }
  return TokenSlot(slots_used_++);
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
