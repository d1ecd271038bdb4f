// Verify (backup/verify.h) with a progress line.
//
// Thread: one.
#ifndef NOWCALLS_ADMIN_VERIFY_H_
#define NOWCALLS_ADMIN_VERIFY_H_

#include <cstdint>

#include "admin/progress.h"
#include "backup/verify.h"
#include "nowcalls/status.h"
#include "store/ledger_source.h"

namespace nowcalls::admin {

using backup::Problem;
using backup::ProblemKind;
using backup::ProblemName;
using backup::ProblemSink;
using backup::VerifySummary;

class ProgressWatcher : public backup::VerifyWatcher {
 public:
  explicit ProgressWatcher(Progress* progress) : progress_(progress) {}

  void ExpectTokens(uint64_t total) override { progress_->set_total(total); }
  Status OnToken() override {
    progress_->Count();
    return {};
  }

 private:
  Progress* const progress_;
};

inline Result<VerifySummary> Verify(store::LedgerSource* store, uint64_t problems_max,
                                    const ProblemSink& sink, Progress* progress) {
  ProgressWatcher watcher(progress);
  return backup::Verify(store, problems_max, sink, &watcher);
}

}  // namespace nowcalls::admin

#endif  // NOWCALLS_ADMIN_VERIFY_H_
