// HistoryEntry: the end of a token that its holder did not bring about in time, kept for operators
// after the token itself is gone.
//
// Thread: any. Entries have consecutive sequence numbers. The ledger keeps them in blocks, one for
// each row: what one batch adds, in pieces of at most kHistoryBlockMax. The history is bounded, and
// what is dropped is always the oldest block, as a whole; so a mass of ends costs a row for 256 of
// them, not two for each. Key and value are specified, with a worked example, in FORMAT.md.
#ifndef NOWCALLS_LEDGER_HISTORY_ENTRY_H_
#define NOWCALLS_LEDGER_HISTORY_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nowcalls/call_outcome.h"
#include "nowcalls/param.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::ledger {

// Releases in time of calls that ended well, and cancelled acquires, are what clients are meant to
// do: counted, not kept.
constexpr bool IsKeptInHistory(EndReason reason, CallOutcome outcome = CallOutcome::kOk) {
  if (reason == EndReason::kReleased) return outcome != CallOutcome::kOk;
  return reason != EndReason::kCancelled;
}

// Text: std::string, or std::string_view for one that is only looked at.
template <typename Text>
struct HistoryEntryOf {
  uint64_t sequence = 0;  // 1 .. kFenceMax (entities.h).
  int64_t ended_ms = 0;   // Ledger clock; never below that of an entry before, or issued_ms.
  EndReason reason = EndReason::kAdmin;  // One that IsKeptInHistory.
  TokenId token_id;
  FlowId flow;
  SessionId session;
  uint32_t count = 0;
  Fence fence;
  int64_t issued_ms = 0;
  Text name_space;  // Of the session, as is client_id.
  Text client_id;
  Text note;  // What the administrator gave as the reason; empty for other ends.
  // Of the token; none: it had no parameter.
  std::optional<std::conditional_t<std::is_same_v<Text, std::string>, ParamValue, Param>> param{};
  // Of the session, if its client id had another one at that moment; else 0.
  uint64_t instance = 0;
  CallOutcome outcome = CallOutcome::kOk;  // Of the call, as the release said; else kOk.

  bool operator==(const HistoryEntryOf&) const = default;
};

using HistoryEntry = HistoryEntryOf<std::string>;
// Neither empty nor longer than kHistoryBlockMax, with consecutive sequences.
using HistoryBlock = std::vector<HistoryEntry>;

inline constexpr size_t kHistoryBlockMax = 256;

inline constexpr size_t kHistoryKeyBytes = 8;
// Of a value with `entries` of them, but for the bytes of their texts and marks. A block with
// parameters or marks takes up to one byte an entry, and two, more.
constexpr size_t HistoryFixedBytes(size_t entries) { return (entries == 1 ? 1 : 3) + entries * 57; }
// Of the texts of an entry, of its parameter and of what is marked.
size_t HistoryTextBytes(const HistoryEntry& entry);

// sequence:be64 of the first entry, so that keys sort from old to new.
std::string EncodeHistoryKey(uint64_t sequence);
Result<uint64_t> DecodeHistoryKey(std::string_view key);

// Of one entry: version 1 | entry. Of more: version 2 | their number in two bytes | entries. Each
// is reason | ended_ms | token_id | flow | session | count | fence | issued_ms | namespace and
// client id, each behind its length in one byte | note behind its length in two.
// If any entry has a parameter: version 3 | their number in two bytes | entries, behind each its
// parameter (param_codec.h).
// If any entry has an instance or another outcome than kOk: version 4 | their number in two bytes |
// entries, behind each a byte of marks and what they mark (FORMAT.md).
// REQUIRES: a block within the ranges that the decoder checks.
std::string EncodeHistoryValue(std::span<const HistoryEntry> block);
// kCorruption, naming the field. CheckHistory finds the same without making entries.
Status CheckHistory(std::string_view key, std::string_view value);
Result<HistoryBlock> DecodeHistory(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_HISTORY_ENTRY_H_
