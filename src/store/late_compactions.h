// LateCompactions: an Env whose jobs of low priority, which are RocksDB's compactions, wait while
// something else needs all the processor time and all of the disk that there is.
//
// Thread: any, but for Committed. RocksDB begins to compact as soon as a ledger is open, beside the
// threads that read it. Whoever commits, copies or closes lets compactions in first: where there
// are very many files that waits for one.
//
// They wait, too, while very many tokens end, which makes files with many tombstones, each of which
// asks for a compaction of nearly all there is. They do so until it is over, or until a family has
// so many files more that its commits would soon be slowed down.
#ifndef NOWCALLS_STORE_LATE_COMPACTIONS_H_
#define NOWCALLS_STORE_LATE_COMPACTIONS_H_

#include <rocksdb/env.h>
#include <rocksdb/listener.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace nowcalls::store {

class LateCompactions : public rocksdb::EnvWrapper {
 public:
  explicit LateCompactions(std::unique_ptr<rocksdb::Env> env);

  // Tokens end by the mass when as many did within kWindowMs: ten times what sweeps find by
  // default. It is over when kCalmMs have passed without.
  static constexpr uint64_t kMassDue = 10'000;
  static constexpr int64_t kWindowMs = 100;
  static constexpr int64_t kCalmMs = 300;
  // Of one family, while compactions wait for the end of a mass. RocksDB compacts from 4 files on,
  // and slows commits down from 20 on.
  static constexpr int kFlushesMax = 10;

  // Those that wait, and from now on all at once, but for the next mass.
  void LetIn();

  // A batch with so many due tokens was committed; 0: there was nothing to commit. The writer,
  // which calls this once a second at least, unless a commit takes longer.
  void Committed(uint32_t due, int64_t now_ms);

  // Of the database, which ends before this does: it counts flushes.
  std::shared_ptr<rocksdb::EventListener> NewListener();
  // A family has a file more; `slow`: so many that its commits are slowed down from now on.
  void Flushed(uint32_t family, bool slow);

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

  // Takes those that wait, if nothing holds them; mutex_ held.
  std::vector<Job> TakeWaiting();
  void Begin(const std::vector<Job>& jobs);

  // The writer's: when the window began, what was due in it, and when there was a mass last.
  int64_t window_begin_ms_ = 0;
  uint64_t window_due_ = 0;
  bool mass_ = false;
  int64_t mass_ms_ = 0;

  std::mutex mutex_;
  bool let_in_ = false;  // Guarded by mutex_, as are the next three.
  bool held_ = false;    // By the mass that began last.
  std::map<uint32_t, int> flushes_;
  std::vector<Job> waiting_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LATE_COMPACTIONS_H_
