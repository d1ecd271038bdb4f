// HistoryEntry: the end of a token that IsKeptInHistory, for operators (FORMAT.md).
//
// Thread: any. A row holds a block, with entries of one batch.
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

constexpr bool IsKeptInHistory(EndReason reason, CallOutcome outcome = CallOutcome::kOk) {
  if (reason == EndReason::kReleased) return outcome != CallOutcome::kOk;
  return reason != EndReason::kCancelled;
}

template <typename Text>
struct HistoryEntryOf {
  uint64_t sequence = 0;  // 1 .. kFenceMax (entities.h).
  int64_t ended_ms = 0;   // Ledger clock; >= that of earlier entries and >= issued_ms.
  EndReason reason = EndReason::kAdmin;  // One that IsKeptInHistory.
  TokenId token_id;
  FlowId flow;
  SessionId session;
  uint32_t count = 0;
  Fence fence;
  int64_t issued_ms = 0;
  Text name_space;  // Of the session, as is client_id.
  Text client_id;
  Text note;  // The administrator's reason; empty for other ends.
  std::optional<std::conditional_t<std::is_same_v<Text, std::string>, ParamValue, Param>> param{};
  // Of the session, if its client id had another session then; else 0.
  uint64_t instance = 0;
  CallOutcome outcome = CallOutcome::kOk;  // Of the call, by its release; else kOk.

  bool operator==(const HistoryEntryOf&) const = default;
};

using HistoryEntry = HistoryEntryOf<std::string>;
// 1 .. kHistoryBlockMax entries with consecutive sequences.
using HistoryBlock = std::vector<HistoryEntry>;

inline constexpr size_t kHistoryBlockMax = 256;

inline constexpr size_t kHistoryKeyBytes = 8;
// Bytes of a value without texts and marks. Parameters or marks add up to one byte an entry, and
// two.
constexpr size_t HistoryFixedBytes(size_t entries) { return (entries == 1 ? 1 : 3) + entries * 57; }
// Bytes of an entry's texts, parameter and marked fields.
size_t HistoryTextBytes(const HistoryEntry& entry);

// Of the first entry; sorts from old to new.
std::string EncodeHistoryKey(uint64_t sequence);
Result<uint64_t> DecodeHistoryKey(std::string_view key);

// In the first of FORMAT.md's layouts that has room for all fields. REQUIRES: a block within the
// decoder's ranges.
std::string EncodeHistoryValue(std::span<const HistoryEntry> block);
// kCorruption, naming the field. CheckHistory makes no entries.
Status CheckHistory(std::string_view key, std::string_view value);
Result<HistoryBlock> DecodeHistory(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_HISTORY_ENTRY_H_
