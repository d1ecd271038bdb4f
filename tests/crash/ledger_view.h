// Reads a ledger from outside, through nowcalls-admin.
//
// Thread: any. Throws std::runtime_error when the tool fails or prints rows of another form.
#ifndef NOWCALLS_CRASH_LEDGER_VIEW_H_
#define NOWCALLS_CRASH_LEDGER_VIEW_H_

#include "crash/checker.h"
#include "support/admin.h"

namespace nowcalls::crash {

// dump and stat of a data directory or of a running server.
LedgerView ReadLedger(const testing::Source& source);

// What a running server says of the flows; 0 of one that it does not know.
CountByFlow ReportedNowCalls(testing::RpcClient* client, const std::vector<int64_t>& flow_ids);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_LEDGER_VIEW_H_
