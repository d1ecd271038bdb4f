// Numbers of the records in a commit batch. Part of the format, although no ledger stores them:
// never reused, and a changed layout gets a new one. Layouts: FORMAT.md.
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
