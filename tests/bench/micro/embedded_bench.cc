// An embedded service: tokens through TokenService, in the process that asks.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "bench/micro/items.h"
#include "nowcalls/embedded.h"
#include "support/temp_dir.h"

namespace nowcalls::microbench {
namespace {

constexpr FlowId kFlow{1};
constexpr char kRules[] = R"([{"resource": "r", "count": 1000000, "clusterMode": true,
    "clusterConfig": {"flowId": 1, "thresholdType": 1, "resourceTimeout": 60000}}])";

enum Where : int64_t { kInMemory, kNoSync, kSync };

class Service {
 public:
  explicit Service(int64_t where) {
    EmbeddedOptions options;
    if (where != kInMemory) options.data_dir = dir_.Sub("data");
    options.sync = where == kSync;
    auto opened = Embedded::Open(options);
    NOWCALLS_CHECK(opened.ok());
    tokens_ = *std::move(opened);
    NOWCALLS_CHECK(tokens_->LoadRules("default", kRules).ok());
  }
  Embedded* operator->() { return tokens_.get(); }

 private:
  const testing::TempDir dir_;
  std::unique_ptr<Embedded> tokens_;
};

// Acquire and release, each waiting for its answer. Threads share the service.
void EmbeddedBlocking(benchmark::State& state) {
  static std::unique_ptr<Service> shared;
  if (state.thread_index() == 0) shared = std::make_unique<Service>(state.range(0));
  for ([[maybe_unused]] auto iteration : state) {
    Acquired acquired = (*shared)->Acquire(kFlow);
    NOWCALLS_CHECK(acquired.ok());
    NOWCALLS_CHECK(acquired.permit.Release().ok());
  }
  CountItems(&state, 2 * state.iterations());
  if (state.thread_index() == 0) shared.reset();
}

// As many pairs in flight as range(1) says; each callback asks the next call.
class Pairs {
 public:
  explicit Pairs(Service* service) : service_(service) {}

  void Run(int64_t pairs, int64_t in_flight) {
    left_ = pairs - in_flight;
    running_ = in_flight;
    for (int64_t i = 0; i < in_flight; ++i) Begin();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  void Begin() {
    (*service_)->AcquireAsync(kFlow, {}, [this](Acquired acquired) {
      NOWCALLS_CHECK(acquired.ok());
      acquired.permit.ReleaseAsync([this](const Released& released) {
        NOWCALLS_CHECK(released.ok());
        End();
      });
    });
  }
  void End() {
    {
      const std::lock_guard lock(mutex_);
      if (left_ == 0) {
        if (--running_ == 0) done_.notify_one();
        return;
      }
      --left_;
    }
    Begin();
  }

  Service* const service_;
  std::mutex mutex_;
  std::condition_variable done_;
  int64_t left_ = 0;
  int64_t running_ = 0;
};

void EmbeddedAsync(benchmark::State& state) {
  constexpr int64_t kPairs = 4096;
  Service service(state.range(0));
  Pairs pairs(&service);
  for ([[maybe_unused]] auto iteration : state) pairs.Run(kPairs, state.range(1));
  CountItems(&state, 2 * state.iterations() * kPairs);
}

BENCHMARK(EmbeddedBlocking)
    ->ArgName("ledger")
    ->Arg(kInMemory)
    ->Arg(kNoSync)
    ->Arg(kSync)
    ->ThreadRange(1, 8)
    ->UseRealTime();
BENCHMARK(EmbeddedAsync)
    ->ArgNames({"ledger", "in_flight"})
    ->Args({kInMemory, 64})
    ->Args({kNoSync, 64})
    ->Args({kSync, 64})
    ->UseRealTime();

}  // namespace
}  // namespace nowcalls::microbench
