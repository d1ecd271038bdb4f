// QueueModel: who must be granted, refused or left waiting, kept the simplest way: vectors, maps
// and linear scans. It shares no code with the core.
//
// Thread: one at a time. Nothing expires here but waits, so that every answer is exact. What the
// core has granted to a waiter counts in `granted` until the test tells the model the token's id.
#ifndef NOWCALLS_UNIT_CORE_QUEUE_MODEL_H_
#define NOWCALLS_UNIT_CORE_QUEUE_MODEL_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nowcalls/types.h"
#include "support/core_harness.h"

namespace nowcalls::testing {

struct QueueModel {
  // A flow, or one value of its rule's parameter; the value "" is the flow as a whole.
  using Lane = std::pair<int64_t, std::string>;

  struct Token {
    Lane lane;
    std::string client;
    int64_t count = 0;
    uint64_t request_id = 0;
  };
  struct Waiter {
    uint32_t tag = 0;
    uint32_t owner = 0;
    Lane lane;
    std::string client;
    int64_t count = 0;
    bool prioritized = false;
    uint64_t request_id = 0;
    int64_t deadline_ms = 0;
  };
  struct Foretold {
    TokenStatus status = TokenStatus::kOk;
    RefusedBy refused_by = RefusedBy::kNone;
  };

  // A core that grants a bounded number a call may be late: Serve and ServeAll do nothing, and the
  // test grants by Next what the core did.
  bool serves_later = false;

  std::map<int64_t, RuleOptions> rules;               // In force.
  std::set<int64_t> draining;                         // Flows.
  std::map<std::string, std::set<uint32_t>> clients;  // Their connections.
  std::map<uint64_t, Token> tokens;
  std::vector<Waiter> waiters;  // In the order of arrival.
  // Until when the request ids of clients are refused.
  std::map<std::pair<std::string, uint64_t>, int64_t> cancelled;
  // Late answers by lane and tag, in order.
  std::map<Lane, std::vector<std::pair<uint32_t, Foretold>>> late;
  std::vector<Waiter> granted;              // In the same order as the grants in `late`.
  std::map<uint64_t, std::string> history;  // The reason of each end that it tells of, by token.

  bool IsKeyed(int64_t flow) const;  // REQUIRES: a rule.
  int64_t NowCalls(const Lane& lane) const;
  int64_t Held(int64_t flow, const std::string& client) const;
  bool HoldsAny(const std::string& client) const;
  int64_t Online() const;
  int64_t Level(const Lane& lane) const;
  int64_t Cap(const Lane& lane) const;
  RefusedBy Limit(const Lane& lane, const std::string& client, int64_t count) const;
  // No room that others make would help.
  bool Hopeless(const Waiter& waiter) const;
  bool SomebodyAhead(const Lane& lane, bool prioritized) const;

  void AnswerLate(const Waiter& waiter, Foretold answer);
  void Forget(uint32_t tag);
  void DropWaiters(uint32_t owner);
  // All who wait for the flow are told the same, in each lane prioritized ones first.
  void RefuseAll(int64_t flow, Foretold answer);
  // The lanes of the flow that somebody waits in.
  std::set<Lane> LanesOf(int64_t flow) const;
  // Whoever may go now goes.
  void Serve(int64_t flow);
  void ServeAll();
  // The one who may go now before all others of the lane; null: nobody may.
  const Waiter* Next(const Lane& lane) const;
  void Grant(Waiter waiter);

  void EraseToken(uint64_t id);
  void Disconnect(const std::string& client, uint32_t owner);
  void RemoveRule(int64_t flow);
  void Restart();

 private:
  std::vector<const Waiter*> InOrder(const Lane& lane) const;
  // Granted, but their ids are not known yet. Of one client, or of all for "".
  int64_t Pending(const Lane& lane, const std::string& client) const;
  // A session that is offline and holds nothing is gone, with the ids it has cancelled.
  void RetireIfUnused(const std::string& client);
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_UNIT_CORE_QUEUE_MODEL_H_
