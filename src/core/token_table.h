// TokenTable: every live token in memory, compactly, with the orders in which they are walked.
//
// Thread: loop. An entry is 64 bytes at a slot that never moves; an open-addressing index finds it
// by token id, and three lists thread through it in order of issue: all tokens, those of its flow,
// those of its session. The table knows nothing of rules or sessions beyond their slots.
#ifndef NOWCALLS_CORE_TOKEN_TABLE_H_
#define NOWCALLS_CORE_TOKEN_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ledger/families.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

using TokenSlot = uint32_t;
using FlowSlot = uint32_t;
using SessionSlot = uint32_t;
inline constexpr TokenSlot kNoToken = UINT32_MAX;
inline constexpr FlowSlot kNoFlow = UINT32_MAX;
inline constexpr SessionSlot kNoSession = UINT32_MAX;

// Which list of tokens: all, one flow's, or one session's.
enum class TokenOrder : uint8_t { kAll = 0, kFlow = 1, kSession = 2 };

struct TokenLink {
  TokenSlot previous = kNoToken;
  TokenSlot next = kNoToken;
};

struct TokenEntry {
  uint64_t fence = 0;  // 0: the slot is free.
  int64_t deadline_ms : 56 = 0;
  uint64_t family : 7 = 0;
  uint64_t has_request : 1 = 0;  // A request id, kept elsewhere.
  int64_t issued_ms = 0;
  uint32_t count = 0;
  FlowSlot flow = kNoFlow;
  SessionSlot session = kNoSession;
  std::array<TokenLink, 3> links;

  ledger::Family ledger_family() const { return static_cast<ledger::Family>(family); }
  TokenSlot next(TokenOrder order) const { return links[static_cast<size_t>(order)].next; }
};
static_assert(sizeof(TokenEntry) == 64);

// The ends of one list; a member of whoever owns the list.
struct TokenList {
  TokenSlot head = kNoToken;
  TokenSlot tail = kNoToken;
  uint32_t size = 0;
};

// A place in one list that stays valid while tokens come and go: when its token ends it moves on to
// the next. Attached to the table while in use.
struct TokenCursor {
  TokenOrder order = TokenOrder::kAll;
  TokenSlot next = kNoToken;
};

class TokenTable {
 public:
  TokenTable() = default;
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  // A new entry, found by `id` from now on; the caller fills the other members and links it.
  // REQUIRES: `id` is not in the table.
  TokenSlot Insert(TokenId id, uint64_t fence);
  // Puts the entry at the end of all three lists. REQUIRES: not linked yet.
  void Link(TokenSlot slot, TokenList* of_flow, TokenList* of_session);

  // kNoToken if absent. `fence` is the one that `id` stands for.
  TokenSlot Find(TokenId id, uint64_t fence) const;

  // Takes a linked entry out of the index and its lists and frees the slot.
  void Erase(TokenSlot slot, TokenId id, TokenList* of_flow, TokenList* of_session);

  TokenEntry& at(TokenSlot slot) { return chunks_[slot / kChunkSize][slot % kChunkSize]; }
  const TokenEntry& at(TokenSlot slot) const {
    return chunks_[slot / kChunkSize][slot % kChunkSize];
  }

  const TokenList& all() const { return all_; }
  uint32_t size() const { return size_; }
  // Memory held, in bytes.
  size_t MemoryBytes() const;

  // Room for `tokens` without growing the index again.
  void Reserve(uint32_t tokens);

  void Attach(TokenCursor* cursor) { cursors_.push_back(cursor); }
  void Detach(TokenCursor* cursor);

 private:
  // A chunk is 1 MiB: memory grows in steps that a reader of the process size does not notice.
  static constexpr uint32_t kChunkSize = 16384;

  struct IndexEntry {
    uint32_t hash = 0;
    TokenSlot slot = kNoToken;
  };

  // Ids are already evenly distributed, so their low half serves as the hash.
  static uint32_t HashOf(TokenId id) { return static_cast<uint32_t>(id.value); }
  TokenSlot TakeSlot();
  void IndexInsert(uint32_t hash, TokenSlot slot);
  void IndexErase(uint32_t hash, TokenSlot slot);
  void Rehash(size_t buckets);
  void Append(TokenList* list, TokenOrder order, TokenSlot slot);
  void Unlink(TokenList* list, TokenOrder order, TokenSlot slot);

  std::vector<std::unique_ptr<TokenEntry[]>> chunks_;
  TokenSlot free_ = kNoToken;  // Free slots are chained through links[0].next.
  uint32_t slots_used_ = 0;    // Slots ever taken; those beyond were never touched.
  uint32_t size_ = 0;
  std::vector<IndexEntry> index_;
  TokenList all_;
  std::vector<TokenCursor*> cursors_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TOKEN_TABLE_H_
