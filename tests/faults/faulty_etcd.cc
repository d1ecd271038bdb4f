// nowcalls-etcd.so as members in this directory load it: the real client of etcd, and a writer's
// faults that loops over clusters must find.
//
//   FAULTY_ETCD=unfenced  Appends compare nothing. The writer never takes its claim for over.
//   FAULTY_ETCD=hasty     Appends are answered before they are sent.
//
// An append that only left out the claim would still need a slot that is absent. As long as the
// next writer's slots are not trimmed, that deposes an old writer as well.
#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "cluster/etcd.h"
#include "cluster/lease.h"
#include "nowcalls/export.h"
#include "nowcalls_version.h"
#include "test_paths.h"

namespace nowcalls::faults {
namespace {

using cluster::Etcd;
using cluster::EtcdOptions;
using cluster::LeaseTime;
using cluster::Txn;
using cluster::TxnReply;

std::unique_ptr<Etcd> ConnectReal(const EtcdOptions& options) {
  void* const real = dlopen(NOWCALLS_BIN_DIR "/../lib/nowcalls/nowcalls-etcd.so", RTLD_NOW);
  if (real == nullptr) throw std::runtime_error(dlerror());
  using Connect = Etcd*(const EtcdOptions*);
  const auto connect = reinterpret_cast<Connect*>(dlsym(real, "nowcalls_etcd_connect"));
  return std::unique_ptr<Etcd>(connect(&options));
}

bool IsAppend(const Txn& txn) {
  return !txn.then.empty() && txn.then[0].kind == cluster::Operation::Kind::kPut &&
         txn.then[0].key.find("/log/") != std::string::npos;
}

// Calls `work` now and then until it goes.
class Ticker {
 public:
  Ticker(std::chrono::milliseconds pause, std::function<void()> work)
      : pause_(pause), work_(std::move(work)), thread_([this] { Run(); }) {}
  ~Ticker() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    ending_.notify_all();
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    while (!ending_.wait_for(lock, pause_, [this] { return end_; })) {
      lock.unlock();
      work_();
      lock.lock();
    }
  }

  const std::chrono::milliseconds pause_;
  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable ending_;
  bool end_ = false;
  std::thread thread_;
};

class RealEtcd : public Etcd {
 public:
  explicit RealEtcd(const EtcdOptions& options) : real_(ConnectReal(options)) {}

  Result<TxnReply> Commit(const Txn& txn) override { return real_->Commit(txn); }
  Result<LeaseTime> Grant(int64_t ttl_ms) override { return real_->Grant(ttl_ms); }
  Result<LeaseTime> Renew(int64_t lease) override { return real_->Renew(lease); }
  Status Revoke(int64_t lease) override { return real_->Revoke(lease); }
  Status Compact(int64_t revision) override { return real_->Compact(revision); }
  void AwaitChange(const std::string& key, int64_t revision, int64_t wait_ms) override {
    real_->AwaitChange(key, revision, wait_ms);
  }
  void EndWait() override { real_->EndWait(); }

 protected:
  Etcd* real() const { return real_.get(); }

 private:
  const std::unique_ptr<Etcd> real_;
};

// Keeps the lease of its claim alive by itself, and tells the writer that it has it for ever.
class UnfencedEtcd final : public RealEtcd {
 public:
  explicit UnfencedEtcd(const EtcdOptions& options) : RealEtcd(options) {}

  Result<TxnReply> Commit(const Txn& txn) override {
    if (!IsAppend(txn)) return RealEtcd::Commit(txn);
    Txn bare = txn;
    bare.compares.clear();
    return RealEtcd::Commit(bare);
  }

  Result<LeaseTime> Grant(int64_t ttl_ms) override {
    Result<LeaseTime> lease = RealEtcd::Grant(ttl_ms);
    if (!lease.ok() || ttl_ms != cluster::Lease::kTtlMs) return lease;
    constexpr int64_t kForEverMs = 1'000'000'000;
    renewed_.reset();
    renewed_.emplace(std::chrono::milliseconds(ttl_ms / 4),
                     [this, id = lease->id] { (void)real()->Renew(id).ok(); });
    lease->ttl_ms = kForEverMs;
    return lease;
  }

 private:
  std::optional<Ticker> renewed_;
};

class HastyEtcd final : public RealEtcd {
 public:
  explicit HastyEtcd(const EtcdOptions& options) : RealEtcd(options) {}

  Result<TxnReply> Commit(const Txn& txn) override {
    if (!IsAppend(txn)) return RealEtcd::Commit(txn);
    const std::lock_guard lock(mutex_);
    waiting_.push_back(txn);
    return TxnReply{.succeeded = true};
  }

 private:
  void Send() {
    for (;;) {
      Txn next;
      {
        const std::lock_guard lock(mutex_);
        if (waiting_.empty()) return;
        next = waiting_.front();
      }
      if (!RealEtcd::Commit(next).ok()) return;
      const std::lock_guard lock(mutex_);
      waiting_.pop_front();
    }
  }

  std::mutex mutex_;
  std::deque<Txn> waiting_;
  const Ticker sent_{std::chrono::milliseconds(50), [this] { Send(); }};
};

}  // namespace
}  // namespace nowcalls::faults

extern "C" NOWCALLS_EXPORT const char* nowcalls_etcd_version() { return NOWCALLS_VERSION; }

extern "C" NOWCALLS_EXPORT nowcalls::cluster::Etcd* nowcalls_etcd_connect(
    const nowcalls::cluster::EtcdOptions* options) {
  const char* const asked = std::getenv("FAULTY_ETCD");
  const std::string fault = asked == nullptr ? "" : asked;
  if (fault == "unfenced") return new nowcalls::faults::UnfencedEtcd(*options);
  if (fault == "hasty") return new nowcalls::faults::HastyEtcd(*options);
  return new nowcalls::faults::RealEtcd(*options);
}
