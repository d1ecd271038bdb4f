// TokenTable: every live token in memory.
//
// Thread: loop. Entries never move. Three lists link the tokens in order of issue: all, of a flow,
// of a session.
//
// The last kRecent fences lie in a ring, older ones in indexes (slot_index.h).
//
// Memory: 64 bytes a token, a request id 8, a key 4; 8 an entry of an index, which grows at 3/4
// full.
#ifndef NOWCALLS_CORE_TABLES_TOKEN_TABLE_H_
#define NOWCALLS_CORE_TABLES_TOKEN_TABLE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"
#include "base/populated_memory.h"
#include "base/prefetch.h"
#include "core/tables/slot.h"
#include "core/tables/slot_index.h"
#include "core/tables/slot_table.h"
#include "core/tables/table_sizes.h"
#include "ledger/families.h"

namespace nowcalls::core {

enum class TokenOrder : uint8_t { kAll = 0, kFlow = 1, kSession = 2 };

struct TokenLink {
  TokenSlot previous;
  TokenSlot next;
};

struct alignas(64) TokenEntry {
  uint64_t fence = 0;  // 0: the slot is free.
  int64_t deadline_ms : 56 = 0;
  uint64_t family : 6 = 0;
  uint64_t has_key : 1 = 0;      // See TokenTable::KeyOf.
  uint64_t has_request : 1 = 0;  // See TokenTable::RequestIdOf.
  int64_t issued_ms = 0;
  uint32_t held_since_issue = 0;  // In ms, or in seconds with the bit kInSeconds.
  uint32_t count = 0;
  FlowSlot flow_slot;
  SessionSlot session_slot;
  std::array<TokenLink, 3> links;

  // Time of the grant or last keep. Exact for 24 days after the issue, then under 1 s late for 68
  // years.
  int64_t held_since_ms() const {
    const int64_t value = held_since_issue & ~kInSeconds;
    return issued_ms + (held_since_issue == value ? value : value * 1000);
  }
  void SetHeldSince(int64_t ms) {
    const int64_t since_ms = std::max<int64_t>(ms - issued_ms, 0);
    const int64_t since_s = std::min<int64_t>((since_ms + 999) / 1000, kInSeconds - 1);
    held_since_issue = static_cast<uint32_t>(since_ms < kInSeconds ? since_ms : since_s) |
                       (since_ms < kInSeconds ? 0 : kInSeconds);
  }
  static constexpr uint32_t kInSeconds = uint32_t{1} << 31;
  ledger::Family ledger_family() const { return static_cast<ledger::Family>(family); }
  TokenSlot next(TokenOrder order) const { return links[static_cast<size_t>(order)].next; }
};
static_assert(sizeof(TokenEntry) == 64);

// A member of the list's owner.
struct TokenList {
  TokenSlot head;
  TokenSlot tail;
  uint32_t size = 0;
};

// A place in a list; it moves on when its token ends. Attached while in use.
struct TokenCursor {
  TokenOrder order = TokenOrder::kAll;
  TokenSlot next;
};

class TokenTable {
 public:
  // `hash_key` keeps clients from choosing places.
  explicit TokenTable(const std::array<uint64_t, 2>& hash_key) : hash_key_(hash_key) {}
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  // The caller fills and links it. REQUIRES: `fence` is not 0 and not in the table.
  TokenSlot Insert(uint64_t fence);
  void Reserve(uint32_t tokens) { index_.Reserve(size_t{size_} + tokens); }  // About `tokens` more.
  // Insert during a load: not found before IndexLoaded. The caller checks that fences are unique.
  TokenSlot InsertLoaded(uint64_t fence);
  // SetRequest during a load; IndexLoaded checks the id.
  void SetLoadedRequest(TokenSlot slot, uint64_t request_id);
  // Ends the load. Not kNoToken: an entry shares its request id with a token of its session issued
  // apart; the load failed.
  TokenSlot IndexLoaded();

  // REQUIRES: not linked yet.
  void Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session);

  TokenSlot Find(uint64_t fence) const {
    const TokenSlot recent = recent_[fence % kRecent];
    if (recent != kNoToken && at(recent).fence == fence) return recent;
    return index_.Find(FenceHash(fence), [&](TokenSlot slot) { return at(slot).fence == fence; });
  }

  // The token of a recent fence; else kNoToken or another token. Begins to load its entry.
  TokenSlot GuessRecent(uint64_t fence) const {
    const TokenSlot slot = recent_[fence % kRecent];
    if (slot != kNoToken) PrefetchAt(slot);
    return slot;
  }
  void Prefetch(uint64_t fence) const { index_.Prefetch(FenceHash(fence)); }
  // A while after Prefetch. Another token may have the hash.
  void PrefetchEntry(uint64_t fence) const {
    const TokenSlot slot = index_.Find(FenceHash(fence), [](TokenSlot) { return true; });
    if (slot != kNoToken) PrefetchAt(slot);
  }

  // Any token of the id.
  TokenSlot FindRequest(SessionSlot session, uint64_t request_id) const;
  // Calls visit(TokenSlot).
  template <typename Visit>
  void ForEachOfRequest(SessionSlot session, uint64_t request_id, Visit&& visit) const {
    ForEachOfHash(RequestHash(session, request_id), session, request_id, visit);
  }
  // REQUIRES: the entry is the last inserted; it has a session, but no request id. `request_id` is
  // not 0, and shared only by tokens issued together (ledger/entities.h).
  void SetRequest(TokenSlot slot, uint64_t request_id);
  uint64_t RequestIdOf(TokenSlot slot) const;  // 0: none.

  // The key (KeyTable) whose value the token holds.
  KeySlot KeyOf(TokenSlot slot) const {
    return at(slot).has_key == 0 ? kNoKey
                                 : (*key_chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }
  void SetKey(TokenSlot slot, KeySlot key);  // REQUIRES: no key yet.

  // REQUIRES: a linked entry.
  void Erase(TokenSlot slot, TokenList* of_flow, TokenList* of_session);

  TokenEntry& at(TokenSlot slot) {
    return (*chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }
  const TokenEntry& at(TokenSlot slot) const {
    return (*chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }

  void PrefetchAt(TokenSlot slot) const { PrefetchForWriting(&at(slot)); }

  const TokenList& all() const { return all_; }
  uint32_t size() const { return size_; }
  // 0 without tokens.
  int64_t oldest_issued_ms() const { return all_.head == kNoToken ? 0 : at(all_.head).issued_ms; }
  size_t MemoryBytes() const;

  void Attach(TokenCursor* cursor) { cursors_.push_back(cursor); }
  void Detach(TokenCursor* cursor);

 private:
  static constexpr uint32_t kChunkSize = kTableSizes.token_chunk;  // 1 MiB of entries.
  static constexpr uint32_t kRecent = kTableSizes.recent;
  static constexpr size_t kGroup = 32;  // Places in an index loaded together.

  using RequestChunk = PopulatedPtr<std::array<uint64_t, kChunkSize>>;
  using KeyChunk = PopulatedPtr<std::array<KeySlot, kChunkSize>>;
  using EntryChunk = PopulatedPtr<std::array<TokenEntry, kChunkSize>>;

  uint64_t FenceHash(uint64_t fence) const { return MixBits(fence ^ hash_key_[0]); }
  static uint32_t InTable(uint64_t hash) { return static_cast<uint32_t>(hash); }
  uint64_t RequestHash(SessionSlot session, uint64_t request_id) const {
    return KeyedHash(hash_key_, session.value, request_id);
  }

  bool HasRequest(TokenSlot slot, SessionSlot session, uint64_t request_id) const {
    return at(slot).session_slot == session && RequestIdOf(slot) == request_id;
  }
  template <typename Visit>
  void ForEachOfHash(uint64_t hash, SessionSlot session, uint64_t request_id, Visit& visit) const {
    const auto is_last = [&](TokenSlot slot) {
      if (HasRequest(slot, session, request_id)) visit(slot);
      return false;
    };
    recent_requests_.Find(InTable(hash), is_last);
    if (by_request_.size() > 0) by_request_.Find(hash, is_last);
  }
  bool ClashesWithLoaded(uint64_t hash, TokenSlot slot) const;
  TokenSlot TakeSlot();
  bool IsRecent(TokenSlot slot) const { return recent_[at(slot).fence % kRecent] == slot; }
  void MoveToIndexes(TokenSlot slot);
  TokenSlot FindRequest(uint64_t hash, SessionSlot session, uint64_t request_id) const;
  void StoreRequest(TokenSlot slot, uint64_t request_id);
  void IndexLoadedGroup();
  void Append(TokenList* list, TokenOrder order, TokenSlot slot);
  void Unlink(TokenList* list, TokenOrder order, TokenSlot slot);

  const std::array<uint64_t, 2> hash_key_;
  std::vector<EntryChunk> chunks_;
  std::vector<RequestChunk> request_chunks_;  // Of each chunk; null: none of its entries ever had.
  size_t request_chunks_made_ = 0;
  std::vector<KeyChunk> key_chunks_;  // Likewise.
  size_t key_chunks_made_ = 0;
  TokenSlot free_;           // Free slots are chained through links[0].next.
  uint32_t slots_used_ = 0;  // Slots ever taken; others are untouched.
  uint32_t size_ = 0;
  // By fence % kRecent: the youngest such token, if it lives.
  std::vector<TokenSlot> recent_ = std::vector<TokenSlot>(kRecent, kNoToken);
  SlotTable<TokenSlot> recent_requests_;  // Of tokens in the ring.
  SlotIndex<TokenSlot> index_;            // By fence: all others.
  SlotIndex<TokenSlot> by_request_;
  std::array<std::pair<uint64_t, TokenSlot>, kGroup> loaded_group_;  // Hashes of fences.
  size_t loaded_grouped_ = 0;
  std::vector<TokenSlot> loaded_requests_;  // With a request id, until IndexLoaded.
  TokenList all_;
  std::vector<TokenCursor*> cursors_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_TOKEN_TABLE_H_
