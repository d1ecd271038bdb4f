// HistoryEntry: the end of a token that its holder did not bring about in time, kept for operators
// after the token itself is gone.
//
// Thread: any. Key and value are specified, with a worked example, in FORMAT.md. The history is
// bounded: entries have consecutive sequence numbers, and those dropped are always the oldest.
#ifndef NOWCALLS_LEDGER_HISTORY_ENTRY_H_
#define NOWCALLS_LEDGER_HISTORY_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::ledger {

// Releases in time and cancelled acquires are what clients are meant to do: counted, not kept.
constexpr bool IsKeptInHistory(EndReason reason) {
  return reason != EndReason::kReleased && reason != EndReason::kCancelled;
}

// Text: std::string, or std::string_view for one that is only looked at.
template <typename Text>
struct HistoryEntryOf {
  uint64_t sequence = 0;  // >= 1.
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

  bool operator==(const HistoryEntryOf&) const = default;
};

using HistoryEntry = HistoryEntryOf<std::string>;

inline constexpr size_t kHistoryKeyBytes = 8;
// Of a value, but for the bytes of its three texts.
inline constexpr size_t kHistoryFixedBytes = 58;

// sequence:be64, so that keys sort from old to new.
std::string EncodeHistoryKey(uint64_t sequence);
Result<uint64_t> DecodeHistoryKey(std::string_view key);

// version | reason | ended_ms | token_id | flow | session | count | fence | issued_ms | namespace
// and client id, each behind its length in one byte | note behind its length in two
// REQUIRES: an entry within the ranges that the decoder checks.
std::string EncodeHistoryValue(const HistoryEntry& entry);
// kCorruption, naming the field. CheckHistory finds the same without making an entry.
Status CheckHistory(std::string_view key, std::string_view value);
Result<HistoryEntry> DecodeHistory(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_HISTORY_ENTRY_H_
