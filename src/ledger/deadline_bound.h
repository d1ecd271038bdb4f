// Which deadlines a token can have.
#ifndef NOWCALLS_LEDGER_DEADLINE_BOUND_H_
#define NOWCALLS_LEDGER_DEADLINE_BOUND_H_

#include <cstdint>

namespace nowcalls::ledger {

// Milliseconds on the ledger clock, a million years after 1970: no rule makes a deadline of this or
// more, although the layout has room for it, so a ledger that has one is damaged (FORMAT.md).
inline constexpr int64_t kDeadlineMsEnd = int64_t{1} << 55;

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_DEADLINE_BOUND_H_
