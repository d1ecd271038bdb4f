// SessionTap: reads along what a client session sends and is sent.
//
// Thread: one at a time. It tells the oracle what a SimClient tells it, so that the server is
// judged in the same way, and the session's judge what passed. It uses the decoders of wire/, and
// nothing of client/.
#ifndef NOWCALLS_SIM_SESSION_TAP_H_
#define NOWCALLS_SIM_SESSION_TAP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/oracle.h"
#include "sim/session_judge.h"
#include "sim/sim_rules.h"
#include "sim/trace.h"
#include "wire/client_messages.h"
#include "wire/messages.h"
#include "wire/param_list.h"

namespace nowcalls::sim {

class SessionTap {
 public:
  struct World {
    Network* network = nullptr;
    Oracle* oracle = nullptr;
    Trace* trace = nullptr;
    const std::vector<SimRule>* rules = nullptr;
  };

  SessionTap(std::string name, std::string owner, const World& world, SessionJudge* judge)
      : name_(std::move(name)), owner_(std::move(owner)), world_(world), judge_(judge) {}

  void Connected(LinkId link) { link_ = link; }
  void Down();
  // One whole message each.
  void Sent(std::string_view message);
  void Heard(std::string_view message);

  uint64_t granted() const { return granted_; }

 private:
  // Told of an answer that is no error.
  using Answered = std::function<void(std::string_view result)>;
  struct Asked {
    Answered answered{};
    std::function<void()> failed{};  // Told of an error.
    int64_t sent_ms = 0;
  };

  Asked Hello(const wire::Envelope& envelope);
  Asked Acquire(const wire::Envelope& envelope);
  Asked AcquireAll(const wire::Envelope& envelope);
  Asked Cancel(const wire::Envelope& envelope);
  Asked Release(const wire::Envelope& envelope);
  Asked Keep(const wire::Envelope& envelope);
  Asked Request(const wire::Envelope& envelope);
  Asked RequestParam(const wire::Envelope& envelope);
  Asked AfterCalls(CallsId calls);
  bool IsMisfit(int64_t flow, bool by_value) const;
  AcquireTerms Terms(bool prioritized, std::optional<uint64_t> wait_ms, uint64_t hold_ms) const;
  void AcquireAnswered(OpId op, uint64_t request_id, const wire::AcquireReply& reply);
  void AllAnswered(const std::vector<OpId>& ops, const std::vector<Item>& items,
                   uint64_t request_id, const wire::AcquireAllReply& reply);
  void SayGranted(uint64_t request_id, uint64_t fence, uint64_t hold_ms);
  void Misunderstood(const std::string& what);
  void Say(std::string_view what) { world_.trace->Add(name_, ": ", what); }

  const std::string name_;
  const std::string owner_;  // NAMESPACE/CLIENT
  const World world_;
  SessionJudge* const judge_;
  LinkId link_ = kNoLink;
  std::map<uint32_t, Asked> asked_;
  wire::ParamList values_;
  uint64_t granted_ = 0;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_SESSION_TAP_H_
