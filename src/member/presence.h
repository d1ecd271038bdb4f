// Presence: tells the other members about this one, and tidies the log while this one writes.
//
// Thread: the owner's. A thread, "nc-member", asks etcd about once a second.
#ifndef NOWCALLS_MEMBER_PRESENCE_H_
#define NOWCALLS_MEMBER_PRESENCE_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/etcd.h"
#include "cluster/keys.h"
#include "cluster/records.h"
#include "nowcalls/status.h"

namespace nowcalls::member {

struct HeardMember {
  cluster::MemberRecord record;
  int64_t silent_ms = 0;  // Since this member heard it say something last.
};

class Presence {
 public:
  // A member that is silent for so long is no reason to keep the log.
  static constexpr int64_t kTtlMs = 10'000;

  struct Calls {
    // What this member says of itself now. nullopt: nothing yet.
    std::function<std::optional<cluster::MemberRecord>()> record;
    // What the live members say, this one too, in the order of their names. Without etcd: those
    // that it named last.
    std::function<void(const std::vector<HeardMember>&)> members;
  };

  // All outlive it. Calls run on the thread.
  Presence(cluster::Etcd* etcd, const cluster::Keys* keys, Calls calls);
  // Takes back what it told.
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  void Run();
  void Tell(const cluster::MemberRecord& record);
  Result<cluster::TxnReply> Exchange(const cluster::MemberRecord& record);
  void Hear(const cluster::TxnReply& reply, int64_t now_ms);
  void Compact(int64_t revision);

  cluster::Etcd* const etcd_;
  const cluster::Keys* const keys_;
  const Calls calls_;
  // Of a key: which of its versions was seen last, when it was seen first, and what it says.
  struct Heard {
    int64_t version = 0;
    int64_t at_ms = 0;
    std::optional<cluster::MemberRecord> record{};
  };
  std::map<std::string, Heard> heard_;  // The thread's, as are the next three.
  std::optional<cluster::LeaseTime> lease_;
  int64_t revision_ = 0;  // As of looked_ms_.
  int64_t looked_ms_ = 0;

  std::mutex mutex_;
  std::condition_variable ending_;
  bool end_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_PRESENCE_H_
