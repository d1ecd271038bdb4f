// LateCompactions: an Env that holds compactions back until a start has read its ledger.
//
// Thread: any. LetIn precedes every commit, copy or close, since each may wait for a compaction.
#ifndef NOWCALLS_STORE_ROCKS_LATE_COMPACTIONS_H_
#define NOWCALLS_STORE_ROCKS_LATE_COMPACTIONS_H_

#include <rocksdb/env.h>

#include <memory>
#include <mutex>
#include <vector>

#include "store/rocks/ledger_env.h"

namespace nowcalls::store {

class LateCompactions : public LedgerEnv {
 public:
  explicit LateCompactions(std::unique_ptr<rocksdb::Env> env);

  // Schedules held compactions; others run at once.
  void LetIn();

  const char* Name() const override { return "nowcalls.LateCompactions"; }
  // Jobs of low priority are compactions.
  void Schedule(void (*run)(void* arg), void* arg, Priority priority, void* tag,
                void (*dropped)(void* arg)) override;
  int UnSchedule(void* tag, Priority priority) override;

 private:
  struct Job {
    void (*run)(void* arg);
    void* arg;
    void* tag;
    void (*dropped)(void* arg);
  };

  std::mutex mutex_;
  bool let_in_ = false;       // Guarded by mutex_.
  std::vector<Job> waiting_;  // Guarded by mutex_. Empty once let_in_ is set.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LATE_COMPACTIONS_H_
