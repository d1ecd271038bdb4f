// Upper bound of deadlines.
#ifndef NOWCALLS_LEDGER_DEADLINE_BOUND_H_
#define NOWCALLS_LEDGER_DEADLINE_BOUND_H_

#include <cstdint>

namespace nowcalls::ledger {

// Ledger-clock milliseconds, a million years. Rules make smaller deadlines, so a ledger with a
// greater one is damaged (FORMAT.md).
inline constexpr int64_t kDeadlineMsEnd = int64_t{1} << 55;

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_DEADLINE_BOUND_H_
