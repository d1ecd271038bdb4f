#include "store/late_compactions.h"

#include <algorithm>
#include <utility>

namespace nowcalls::store {
namespace {

class FlushListener : public rocksdb::EventListener {
 public:
  explicit FlushListener(LateCompactions* compactions) : compactions_(compactions) {}
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& flush) override {
    compactions_->Flushed(flush.cf_id, flush.triggered_writes_slowdown);
  }

 private:
  LateCompactions* const compactions_;
};

}  // namespace

LateCompactions::LateCompactions(std::unique_ptr<rocksdb::Env> env)
    : rocksdb::EnvWrapper(std::move(env)) {
  // An EnvWrapper would offer its own, made of the Env's older calls.
  file_system_ = target()->GetFileSystem();
  system_clock_ = target()->GetSystemClock();
}

void LateCompactions::LetIn() {
  std::vector<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    let_in_ = true;
    held_ = false;
    jobs = TakeWaiting();
  }
  Begin(jobs);
}

void LateCompactions::Committed(uint32_t due, int64_t now_ms) {
  if (now_ms - window_begin_ms_ >= kWindowMs) {
    window_begin_ms_ = now_ms;
    window_due_ = 0;
  }
  window_due_ += due;
  const bool mass = window_due_ >= kMassDue;
  if (mass) mass_ms_ = now_ms;
  if (mass == mass_ || (mass_ && now_ms - mass_ms_ < kCalmMs)) return;
  mass_ = mass;
  std::vector<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    held_ = mass;
    flushes_.clear();
    jobs = TakeWaiting();
  }
  Begin(jobs);
}

// A commit that RocksDB stops waits for a compaction, so none is held then: only a flush brings a
// family there, and says so.
void LateCompactions::Flushed(uint32_t family, bool slow) {
  std::vector<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    if (!held_ || (++flushes_[family] < kFlushesMax && !slow)) return;
    held_ = false;
    jobs = TakeWaiting();
  }
  Begin(jobs);
}

std::vector<LateCompactions::Job> LateCompactions::TakeWaiting() {
  std::vector<Job> jobs;
  if (let_in_ && !held_) jobs.swap(waiting_);
  return jobs;
}

void LateCompactions::Begin(const std::vector<Job>& jobs) {
  for (const Job& job : jobs) target()->Schedule(job.run, job.arg, LOW, job.tag, job.dropped);
}

std::shared_ptr<rocksdb::EventListener> LateCompactions::NewListener() {
  return std::make_shared<FlushListener>(this);
}

void LateCompactions::Schedule(void (*run)(void* arg), void* arg, Priority priority, void* tag,
                               void (*dropped)(void* arg)) {
  if (priority == LOW) {
    const std::lock_guard lock(mutex_);
    if (!let_in_ || held_) return waiting_.push_back({run, arg, tag, dropped});
  }
  target()->Schedule(run, arg, priority, tag, dropped);
}

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
