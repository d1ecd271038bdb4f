// Board: the loop's state, readable while the loop stands still.
//
// Thread: the loop writes, and what is of a cluster the threads of a member; any thread reads.
#ifndef NOWCALLS_WEB_BOARD_H_
#define NOWCALLS_WEB_BOARD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "wire/cluster_messages.h"

namespace nowcalls::web {

// One writer.
class TimeHistogram {
 public:
  // Upper ends in microseconds; a last bucket holds the rest.
  static constexpr std::array<uint64_t, 14> kUpToUs = {
      100,    250,    500,     1'000,   2'500,   5'000,     10'000,
      25'000, 50'000, 100'000, 250'000, 500'000, 1'000'000, 5'000'000};

  void Add(uint64_t us) {
    size_t bucket = 0;
    while (bucket < kUpToUs.size() && us > kUpToUs[bucket]) ++bucket;
    Grow(&counts_[bucket], 1);
    Grow(&sum_us_, us);
  }
  uint64_t count(size_t bucket) const { return counts_[bucket].load(std::memory_order_relaxed); }
  uint64_t sum_us() const { return sum_us_.load(std::memory_order_relaxed); }

 private:
  static void Grow(std::atomic<uint64_t>* sum, uint64_t by) {
    sum->store(sum->load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kUpToUs.size() + 1> counts_{};
  std::atomic<uint64_t> sum_us_{0};
};

// The last description of the cluster.
class SharedCluster {
 public:
  void Set(std::shared_ptr<const wire::ClusterReply> cluster) {
    const std::lock_guard lock(mutex_);
    cluster_ = std::move(cluster);
  }
  // nullptr: this server is no member, or has heard nothing yet.
  std::shared_ptr<const wire::ClusterReply> Get() const {
    const std::lock_guard lock(mutex_);
    return cluster_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const wire::ClusterReply> cluster_;
};

struct Board {
  enum class Phase : uint8_t { kLoading, kStandby, kServing, kEnding };
  static constexpr const char* PhaseName(Phase phase) {
    switch (phase) {
      case Phase::kLoading: return "loading";
      case Phase::kStandby: return "standby";
      case Phase::kServing: return "serving";
      case Phase::kEnding: return "ending";
    }
    return "";
  }

  std::atomic<Phase> phase{Phase::kLoading};
  // BoottimeMs by which the loop turns again, unless it stands still; 0: not yet.
  std::atomic<int64_t> turns_by_ms{0};
  std::atomic<int64_t> commit_since_ms{0};  // BoottimeMs; 0: no commit is under way.
  // Of a member of a cluster; a term of 0: this server is none.
  std::atomic<uint64_t> cluster_term{0};       // Of the last writer that it knows of.
  std::atomic<uint64_t> cluster_lag{0};        // Batches that the log has and its tables lack.
  std::atomic<bool> cluster_follows{false};    // A standby's last look at the log succeeded.
  std::atomic<uint64_t> cluster_members{0};    // Those that live.
  std::atomic<uint64_t> cluster_log_bytes{0};  // While it writes.
  std::atomic<uint64_t> cluster_log_bytes_max{0};
  std::atomic<uint64_t> cluster_etcd_failures{0};  // Requests without an answer, or refused.
  SharedCluster cluster;
  TimeHistogram commits;  // Each commit, from its beginning to the disk.
  TimeHistogram turns;    // Each turn of the loop, without its sleep.
};

inline bool IsWriter(const Board& board) {
  const auto phase = board.phase.load(std::memory_order_acquire);
  return phase == Board::Phase::kServing || phase == Board::Phase::kEnding;
}
// A member that does not serve: what it knew as the writer is old.
inline bool StandsBy(const Board& board) {
  return board.cluster_term.load(std::memory_order_relaxed) > 0 && !IsWriter(board);
}

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_BOARD_H_
