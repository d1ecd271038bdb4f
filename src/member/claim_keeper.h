// ClaimKeeper: renews the lease of a writer's claim, and knows until when it surely holds.
//
// Thread: the owner's, but for over. A thread, "nc-claim", asks etcd.
#ifndef NOWCALLS_MEMBER_CLAIM_KEEPER_H_
#define NOWCALLS_MEMBER_CLAIM_KEEPER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cluster/etcd.h"
#include "cluster/lease.h"

namespace nowcalls::member {

class ClaimKeeper {
 public:
  // `lease` was granted when it was asked for at `asked_ms`, BoottimeMs. `etcd` outlives it, and
  // answers quickly or not at all. `over`: on the thread, once, with the reason.
  ClaimKeeper(cluster::Etcd* etcd, const cluster::LeaseTime& lease, int64_t asked_ms,
              std::function<void(const std::string& why)> over);
  // The lease is left to end, or was given back.
  ~ClaimKeeper();
  ClaimKeeper(const ClaimKeeper&) = delete;
  ClaimKeeper& operator=(const ClaimKeeper&) = delete;

  // Thread: any. Another may be the writer: nothing may leave without the log.
  bool over() const;

 private:
  void Run();
  // False: the end.
  bool SleepUntil(int64_t ms);

  cluster::Etcd* const etcd_;
  const int64_t lease_id_;
  const std::function<void(const std::string& why)> over_;
  cluster::Lease lease_;  // The thread's.
  std::atomic<int64_t> sure_until_ms_;

  std::mutex mutex_;
  std::condition_variable ending_;
  bool end_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_CLAIM_KEEPER_H_
