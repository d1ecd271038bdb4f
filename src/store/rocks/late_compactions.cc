#include "store/rocks/late_compactions.h"

#include <algorithm>
#include <utility>

namespace nowcalls::store {

// RocksDB compacts as soon as a ledger is open, beside the two threads of a start. A start of a
// million tokens with a compaction due took a quarter longer.
LateCompactions::LateCompactions(std::unique_ptr<rocksdb::Env> env) : LedgerEnv(std::move(env)) {}

void LateCompactions::LetIn() {
  std::vector<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    let_in_ = true;
    jobs.swap(waiting_);
  }
  for (const Job& job : jobs) target()->Schedule(job.run, job.arg, LOW, job.tag, job.dropped);
}

void LateCompactions::Schedule(void (*run)(void* arg), void* arg, Priority priority, void* tag,
                               void (*dropped)(void* arg)) {
  if (priority == LOW) {
    const std::lock_guard lock(mutex_);
    if (!let_in_) return waiting_.push_back({run, arg, tag, dropped});
  }
  target()->Schedule(run, arg, priority, tag, dropped);
}

// RocksDB takes back the jobs of a closing database.
int LateCompactions::UnSchedule(void* tag, Priority priority) {
  std::vector<Job> jobs;
  if (priority == LOW) {
    const std::lock_guard lock(mutex_);
    const auto others = std::stable_partition(waiting_.begin(), waiting_.end(),
                                              [tag](const Job& job) { return job.tag == tag; });
    jobs.assign(waiting_.begin(), others);
    waiting_.erase(waiting_.begin(), others);
  }
  for (const Job& job : jobs) {
    if (job.dropped != nullptr) job.dropped(job.arg);
  }
  return static_cast<int>(jobs.size()) + target()->UnSchedule(tag, priority);
}

}  // namespace nowcalls::store
