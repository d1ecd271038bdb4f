// Call: one request of a session, with all attempts.
//
// Thread: the session's until the answer is settled. Then Notify runs once, on the thread of
// callbacks, or within the session if the caller blocks.
#ifndef NOWCALLS_CLIENT_CALL_H_
#define NOWCALLS_CLIENT_CALL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/held.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/param.h"
#include "nowcalls/token_service.h"
#include "wire/output_buffer.h"

namespace nowcalls::client {

struct Call {
  enum class Kind : uint8_t { kAcquire, kRate, kRelease, kKeep, kCancel, kPing, kRule };

  explicit Call(Kind k) : kind(k) {}
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Appends the request as of `now_ms`.
  virtual void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const = 0;
  // Tells the caller and destroys its closures: user code. The call may stay in flight.
  virtual void Notify() = 0;

  // Asked again after a broken connection.
  bool repeatable() const {
    return kind != Kind::kRate && kind != Kind::kKeep && kind != Kind::kPing && !counts_anew;
  }
  // Asked until a server answers, with or without a caller.
  bool persistent() const { return kind == Kind::kRelease || kind == Kind::kCancel; }

  // For room, beyond `now_ms`.
  virtual bool MayWait(int64_t /*now_ms*/) const { return false; }

  bool awaited() const { return has_caller && !done; }

  const Kind kind;
  bool blocks = false;       // Its caller waits, so it is told at once, within the session.
  bool has_caller = false;   // It is not the session's own: a caller is told its answer.
  bool done = false;         // The caller's answer is settled.
  bool unsettled = false;    // Sent, and no answer tells whether it was carried out.
  bool counts_anew = false;  // Asked again it would be counted twice.
  bool strayed = false;  // An attempt was left on a connection that broke, and may still arrive.
  uint32_t attempts = 0;
  int64_t sent_ms = 0;
  int64_t deadline_ms = INT64_MAX;  // Of the answer to the caller.
  int64_t tell_ms = 0;              // Its answer is known, and told then; 0: it is not known.
  uint64_t number = 0;              // In the order in which calls were asked; 0: not asked yet.
  std::map<std::pair<int64_t, uint64_t>, std::shared_ptr<Call>>::iterator timer{};  // CallTable's.
};

using CallPtr = std::shared_ptr<Call>;

// A repeat under its request id gives the same tokens.
struct AcquireCall final : Call {
  using Done = std::function<void(Answer answer, std::vector<HeldPtr> held)>;

  AcquireCall() : Call(Kind::kAcquire) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {
    // A blocking caller holds the session's mutex now, and destroys its on_lost later.
    if (!blocks) options.on_lost = nullptr;
    std::exchange(tell, nullptr)(std::move(answer), std::move(held));
  }

  bool MayWait(int64_t now_ms) const override {
    return options.wait && now_ms < begun_ms + options.wait->count();
  }

  std::vector<FlowDemand> demands{};  // At least one.
  bool all = false;                   // By acquire_all.
  AcquireOptions options{};
  uint64_t request_id = 0;
  int64_t begun_ms = 0;
  uint32_t refusals = 0;            // Answers after which it was asked once more.
  bool came_late = false;           // Its grant came late, and it was asked once more.
  std::optional<Answer> refusal{};  // The last of them.
  Done tell{};

  Answer answer{};
  std::vector<HeldPtr> held{};  // One for each demand; null for a rate.
  Milliseconds wait{0};         // As of AllAcquired.
  int64_t rates_ms = 0;         // When its rates let the calls be made.

 private:
  void EncodeAll(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const;
  // None: by the rule.
  std::optional<uint64_t> WaitLeft(int64_t now_ms) const;
};

// Calls a second.
struct RateCall final : Call {
  using Done = std::function<void(Passed)>;

  RateCall() : Call(Kind::kRate) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {
    if (const Done told = std::exchange(tell, nullptr)) told(std::move(answer));
  }

  FlowId flow{};
  bool by_value = false;  // By request_param.
  std::vector<Value> values{};
  RequestOptions options{};
  Done tell{};

  Passed answer{};
};

struct ReleaseCall final : Call {
  using Done = std::function<void(Released)>;

  ReleaseCall() : Call(Kind::kRelease) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {
    if (const Done told = std::exchange(tell, nullptr)) told(std::move(answer));
  }

  HeldPtr held{};
  CallOutcome outcome = CallOutcome::kOk;
  Done tell{};

  Released answer{};
};

struct KeepCall final : Call {
  using Done = std::function<void(Kept)>;

  KeepCall() : Call(Kind::kKeep) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {
    if (const Done told = std::exchange(tell, nullptr)) told(std::move(answer));
  }

  HeldPtr held{};
  Done tell{};

  Kept answer{};
};

struct CancelCall final : Call {
  explicit CancelCall(uint64_t id) : Call(Kind::kCancel), request_id(id) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {}

  const uint64_t request_id;
};

struct PingCall final : Call {
  PingCall() : Call(Kind::kPing) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {}
};

struct RuleCall final : Call {
  explicit RuleCall(int64_t id) : Call(Kind::kRule), flow_id(id) {}
  void Encode(uint32_t msgid, int64_t now_ms, wire::OutputBuffer* out) const override;
  void Notify() override {}

  const int64_t flow_id;
};

// None for monostate.
std::optional<ParamValue> ParamOf(const Value& value);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_CALL_H_
