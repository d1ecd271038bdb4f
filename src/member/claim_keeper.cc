#include "member/claim_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace nowcalls::member {
namespace {

cluster::Lease Granted(const cluster::LeaseTime& lease, int64_t asked_ms) {
  cluster::Lease granted;
  granted.Renewed(asked_ms, lease.ttl_ms);
  return granted;
}

}  // namespace

ClaimKeeper::ClaimKeeper(cluster::Etcd* etcd, const cluster::LeaseTime& lease, int64_t asked_ms,
                         std::function<void(const std::string& why)> over)
    : etcd_(etcd),
      lease_id_(lease.id),
      over_(std::move(over)),
      lease_(Granted(lease, asked_ms)),
      sure_until_ms_(lease_.sure_until_ms()) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "nc-claim");
}

ClaimKeeper::~ClaimKeeper() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

bool ClaimKeeper::over() const { return BoottimeMs() >= sure_until_ms_; }

void ClaimKeeper::Run() {
  while (SleepUntil(std::min(lease_.renew_at_ms(), lease_.sure_until_ms()))) {
    const int64_t now_ms = BoottimeMs();
    if (lease_.over(now_ms)) return over_("etcd has not renewed the lease of the claim in time");
    if (now_ms < lease_.renew_at_ms()) continue;
    const Result<cluster::LeaseTime> renewed = etcd_->Renew(lease_id_);
    if (renewed.ok()) {
      lease_.Renewed(now_ms, renewed->ttl_ms);
      sure_until_ms_ = lease_.sure_until_ms();
    } else if (renewed.status().code() == StatusCode::kNotFound) {
      sure_until_ms_ = 0;
      return over_("etcd has ended the lease of the claim");
    } else {
      lease_.Unanswered(now_ms, BoottimeMs());
    }
  }
}

bool ClaimKeeper::SleepUntil(int64_t ms) {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::milliseconds(std::max<int64_t>(0, ms - BoottimeMs()));
  return !ending_.wait_for(lock, pause, [this] { return end_; });
}

}  // namespace nowcalls::member
