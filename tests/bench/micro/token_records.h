// TokenRecords: batches of a server whose tokens live short: as many are issued as end.
//
// Thread: one at a time. Token ids look random and deadlines are close to each other, as in a
// ledger, so that whoever sorts the keys has the work it has in a server.
#ifndef NOWCALLS_BENCH_MICRO_TOKEN_RECORDS_H_
#define NOWCALLS_BENCH_MICRO_TOKEN_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tables/token_ids.h"
#include "ledger/commit_batch.h"

namespace nowcalls::microbench {

class TokenRecords {
 public:
  // REQUIRES: live_tokens > 0.
  explicit TokenRecords(size_t live_tokens);

  // An open batch with the records of all live tokens.
  void IssueAll(ledger::CommitBatch* batch);
  // One more record: in turn the end of the oldest token, and a new one.
  void AppendOne(ledger::CommitBatch* batch);
  void Seal(ledger::CommitBatch* batch);

 private:
  ledger::Token NextToken();

  core::TokenIds ids_;
  std::vector<ledger::TokenKey> live_;  // A ring.
  size_t oldest_ = 0;
  bool issue_next_ = false;
  uint64_t fence_ = 0;
  uint64_t batch_number_ = 0;
  int64_t now_ms_ = 1'000'000;
};

}  // namespace nowcalls::microbench

#endif  // NOWCALLS_BENCH_MICRO_TOKEN_RECORDS_H_
