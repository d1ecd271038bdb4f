// TrimPlan: up to which slot a log in etcd may be forgotten.
//
// Thread: one at a time; pure.
//
// A member that lacks a slot that is gone takes a copy of the whole ledger. So a quarter of the
// bytes stays in any case, for members that are away, and the rest until all live members have it
// on disk.
#ifndef NOWCALLS_CLUSTER_TRIM_PLAN_H_
#define NOWCALLS_CLUSTER_TRIM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <deque>

namespace nowcalls::cluster {

class TrimPlan {
 public:
  static constexpr uint64_t kSlotsKept = 200;

  // Slots `first` .. `last` are there, of unknown sizes.
  TrimPlan(uint64_t bytes_max, uint64_t first, uint64_t last);

  // The log has taken batch `number`, the next one, of so many bytes.
  void Appended(uint64_t number, size_t bytes);

  // The last slot that may go; 0: none. `synced`: the last batch that all live members have on
  // disk.
  uint64_t To(uint64_t synced);

  uint64_t bytes() const { return bytes_; }

 private:
  // Of a slot that this writer did not write: as much as one may have.
  static constexpr uint64_t kUnknownBytes = 128 * 1024;

  void DropUpTo(uint64_t number);

  const uint64_t bytes_max_;
  uint64_t first_;  // Of sizes_.
  std::deque<uint64_t> sizes_;
  uint64_t bytes_ = 0;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_TRIM_PLAN_H_
