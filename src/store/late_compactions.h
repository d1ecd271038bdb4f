// LateCompactions: an Env whose jobs of low priority, which are RocksDB's compactions, wait until
// they are let in.
//
// Thread: any. RocksDB begins to compact as soon as a ledger is open, beside the threads that read
// it, which need all the processor time there is. Whoever commits, copies or closes lets them in
// first: where there are very many files that waits for a compaction.
#ifndef NOWCALLS_STORE_LATE_COMPACTIONS_H_
#define NOWCALLS_STORE_LATE_COMPACTIONS_H_

#include <rocksdb/env.h>

#include <memory>
#include <mutex>
#include <vector>

namespace nowcalls::store {

class LateCompactions : public rocksdb::EnvWrapper {
 public:
  explicit LateCompactions(std::unique_ptr<rocksdb::Env> env);

  // Those that wait, and from now on all at once.
  void LetIn();

  const char* Name() const override { return "nowcalls.LateCompactions"; }
  void Schedule(void (*run)(void* arg), void* arg, Priority priority, void* tag,
                void (*dropped)(void* arg)) override;
  // A database that is closed takes its jobs back, and waits for none that has not begun.
  int UnSchedule(void* tag, Priority priority) override;

 private:
  struct Job {
    void (*run)(void* arg);
    void* arg;
    void* tag;
    void (*dropped)(void* arg);
  };

  std::mutex mutex_;
  bool let_in_ = false;  // Guarded by mutex_, as is the next.
  std::vector<Job> waiting_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LATE_COMPACTIONS_H_
