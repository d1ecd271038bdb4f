// The numbers of the records in a commit batch. Stored nowhere today, but part of the format all
// the same: a batch may one day be sent to another machine. A number is never reused, and a changed
// layout gets a new one. FORMAT.md gives each layout.
#ifndef NOWCALLS_LEDGER_RECORD_TYPES_H_
#define NOWCALLS_LEDGER_RECORD_TYPES_H_

#include <cstdint>

namespace nowcalls::ledger {

enum class RecordType : uint8_t {
  kTokenIssued = 1,
  kTokenKept = 2,
  kTokenEnded = 3,
  kSessionOpened = 4,
  kSessionClosed = 5,
  kRuleSet = 6,
  kRuleRemoved = 7,
  kClockMarked = 8,
  kWatermarkRaised = 9,
  kSealed = 10,
  // 11 was history_added of one entry.
  kHistoryDropped = 12,
  kNamespaceSet = 16,
  kNamespaceRemoved = 17,
  kHistoryAdded = 18,
  kFormatSet = 19,
  // Of a token with a parameter.
  kKeyedTokenIssued = 20,
  kKeyedTokenKept = 21,
  kRateSet = 22,
  kRateDropped = 23,
};

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_RECORD_TYPES_H_
