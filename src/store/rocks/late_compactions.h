// LateCompactions: an Env that holds RocksDB's compactions until a start has read its ledger.
//
// RocksDB compacts as soon as a ledger is open, beside the two threads that read it. A start of a
// million tokens whose compaction was due took a quarter longer with it.
//
// Thread: any. The store calls LetIn before it commits, copies or closes: with very many data files
// each of these waits for a compaction.
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

  // Schedules the compactions that wait. No later one waits.
  void LetIn();

  const char* Name() const override { return "nowcalls.LateCompactions"; }
  // Jobs of low priority are compactions.
  void Schedule(void (*run)(void* arg), void* arg, Priority priority, void* tag,
                void (*dropped)(void* arg)) override;
  // RocksDB takes back the jobs of a database that it closes.
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
