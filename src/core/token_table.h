// TokenTable: every live token in memory, compactly, with the orders in which they are walked.
//
// Thread: loop. An entry is 64 bytes at a slot that never moves; it is found by its fence, and by
// its session and request id if it has one; and three lists thread through it in order of issue:
// all tokens, those of its flow, those of its session. The table knows nothing of rules or sessions
// beyond their slots.
//
// Most tokens end soon. So the last kRecent fences have places in a ring, side by side, and their
// request ids lie in a small table. A token that outlives its place in the ring moves to the
// indexes (slot_index.h), whose places are all over the memory.
//
// Memory: 64 bytes a token and 8 in an index that grows when it is 3/4 full. A request id takes 8
// bytes more, and as much again in the other index; a key 4.
#ifndef NOWCALLS_CORE_TOKEN_TABLE_H_
#define NOWCALLS_CORE_TOKEN_TABLE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"
#include "base/populated_memory.h"
#include "base/prefetch.h"
#include "core/slot.h"
#include "core/slot_index.h"
#include "core/slot_table.h"
#include "core/table_sizes.h"
#include "ledger/families.h"

namespace nowcalls::core {

// Which list of tokens: all, one flow's, or one session's.
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

  // When the present hold began, with the grant or the last keep. Exact for 24 days after the
  // issue, then less than a second too late, for 68 years.
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

// The ends of one list; a member of whoever owns the list.
struct TokenList {
  TokenSlot head;
  TokenSlot tail;
  uint32_t size = 0;
};

// A place in one list that stays valid while tokens come and go: when its token ends it moves on to
// the next. Attached to the table while in use.
struct TokenCursor {
  TokenOrder order = TokenOrder::kAll;
  TokenSlot next;
};

class TokenTable {
 public:
  // Clients choose request ids; `hash_key` keeps them from choosing the places.
  explicit TokenTable(const std::array<uint64_t, 2>& hash_key) : hash_key_(hash_key) {}
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  // A new entry, found from now on; the caller fills the other members and links it.
  // REQUIRES: `fence` is not 0 and not in the table.
  TokenSlot Insert(uint64_t fence);
  // Room for about this many tokens more.
  void Reserve(uint32_t tokens) { index_.Reserve(size_t{size_} + tokens); }
  // As Insert, for many tokens at once, when a ledger is loaded. Nothing finds the entries, by
  // fence or request id, until IndexLoaded. The caller must see whether a fence comes twice.
  TokenSlot InsertLoaded(uint64_t fence);
  // As SetRequest, for an entry that was loaded; the id may stand for something.
  void SetLoadedRequest(TokenSlot slot, uint64_t request_id);
  // Indexes the loaded entries. Returns kNoToken, or an entry with the request id of another entry
  // of its session that was not issued together with it: then the load has failed.
  TokenSlot IndexLoaded();

  // Puts the entry at the end of all three lists. REQUIRES: not linked yet.
  void Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session);

  // kNoToken if absent.
  TokenSlot Find(uint64_t fence) const {
    const TokenSlot recent = recent_[fence % kRecent];
    if (recent != kNoToken && at(recent).fence == fence) return recent;
    return index_.Find(FenceHash(fence), [&](TokenSlot slot) { return at(slot).fence == fence; });
  }

  // The token of this fence if it is a recent one; kNoToken or any other token if not. Begins to
  // load its entry.
  TokenSlot GuessRecent(uint64_t fence) const {
    const TokenSlot slot = recent_[fence % kRecent];
    if (slot != kNoToken) PrefetchAt(slot);
    return slot;
  }
  // Begins to load the place in the index of a token that is looked for, or ended, soon.
  void Prefetch(uint64_t fence) const { index_.Prefetch(FenceHash(fence)); }
  // Begins to load its entry, a while after Prefetch. Another token may have the hash.
  void PrefetchEntry(uint64_t fence) const {
    const TokenSlot slot = index_.Find(FenceHash(fence), [](TokenSlot) { return true; });
    if (slot != kNoToken) PrefetchAt(slot);
  }

  // The token that the request id of the session stands for, or one of them; kNoToken if none.
  TokenSlot FindRequest(SessionSlot session, uint64_t request_id) const;
  // Calls visit(TokenSlot) for each token that the request id of the session stands for.
  template <typename Visit>
  void ForEachOfRequest(SessionSlot session, uint64_t request_id, Visit&& visit) const {
    ForEachOfHash(RequestHash(session, request_id), session, request_id, visit);
  }
  // REQUIRES: the entry is the last that was inserted, and has its session and no request id yet.
  // `request_id` is not 0. It stands for nothing but tokens that are issued together with this one
  // (ledger/entities.h).
  void SetRequest(TokenSlot slot, uint64_t request_id);
  // 0 if it has none.
  uint64_t RequestIdOf(TokenSlot slot) const;

  // The key whose value the token holds; kNoKey if it has none. KeyTable knows it.
  KeySlot KeyOf(TokenSlot slot) const {
    return at(slot).has_key == 0 ? kNoKey
                                 : (*key_chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }
  // REQUIRES: the entry has no key yet.
  void SetKey(TokenSlot slot, KeySlot key);

  // Takes a linked entry out of the indexes and its lists and frees the slot.
  void Erase(TokenSlot slot, TokenList* of_flow, TokenList* of_session);

  TokenEntry& at(TokenSlot slot) {
    return (*chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }
  const TokenEntry& at(TokenSlot slot) const {
    return (*chunks_[slot.value / kChunkSize])[slot.value % kChunkSize];
  }

  // Begins to load an entry that is wanted soon.
  void PrefetchAt(TokenSlot slot) const { PrefetchForWriting(&at(slot)); }

  const TokenList& all() const { return all_; }
  uint32_t size() const { return size_; }
  // When the oldest token was issued; 0 without tokens.
  int64_t oldest_issued_ms() const { return all_.head == kNoToken ? 0 : at(all_.head).issued_ms; }
  // Memory held, in bytes.
  size_t MemoryBytes() const;

  void Attach(TokenCursor* cursor) { cursors_.push_back(cursor); }
  void Detach(TokenCursor* cursor);

 private:
  // A chunk is 1 MiB: memory grows in steps that a reader of the process size does not notice.
  static constexpr uint32_t kChunkSize = kTableSizes.token_chunk;
  static constexpr uint32_t kRecent = kTableSizes.recent;
  static constexpr size_t kGroup = 32;  // Of places in an index that are loaded together.

  // The request ids of one chunk, from the first that one of its entries gets; as long as the chunk
  // itself, which is for ever.
  using RequestChunk = PopulatedPtr<std::array<uint64_t, kChunkSize>>;
  // The same of keys.
  using KeyChunk = PopulatedPtr<std::array<KeySlot, kChunkSize>>;
  using EntryChunk = PopulatedPtr<std::array<TokenEntry, kChunkSize>>;

  // Which fences live long is a client's choice.
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
  // `hash`: of its session and request id.
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
  uint32_t slots_used_ = 0;  // Slots ever taken; those beyond were never touched.
  uint32_t size_ = 0;
  // By fence % kRecent: one token with such a fence, the last that came, if it lives.
  std::vector<TokenSlot> recent_ = std::vector<TokenSlot>(kRecent, kNoToken);
  SlotTable<TokenSlot> recent_requests_;  // Of those.
  SlotIndex<TokenSlot> index_;            // By fence: all others.
  SlotIndex<TokenSlot> by_request_;
  std::array<std::pair<uint64_t, TokenSlot>, kGroup> loaded_group_;  // Hashes of fences.
  size_t loaded_grouped_ = 0;
  std::vector<TokenSlot> loaded_requests_;  // Those that have any, until IndexLoaded.
  TokenList all_;
  std::vector<TokenCursor*> cursors_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TOKEN_TABLE_H_
