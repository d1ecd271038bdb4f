// Upper bound of deadlines.
#ifndef NOWCALLS_LEDGER_DEADLINE_BOUND_H_
#define NOWCALLS_LEDGER_DEADLINE_BOUND_H_

#include <cstdint>

namespace nowcalls::ledger {

// Ledger-clock milliseconds, a million years. No rule makes a greater deadline (FORMAT.md).
inline constexpr int64_t kDeadlineMsEnd = int64_t{1} << 55;

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_DEADLINE_BOUND_H_
