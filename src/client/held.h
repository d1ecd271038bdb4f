// Held: a token of a session, or a local one.
//
// Thread: the session's. Any thread may read `validity`, `lost`, IsLost and LostReason.
#ifndef NOWCALLS_CLIENT_HELD_H_
#define NOWCALLS_CLIENT_HELD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/validity.h"
#include "nowcalls/permit.h"
#include "nowcalls/token_service.h"
#include "wire/messages.h"

namespace nowcalls::client {

struct Held {
  // kLapsed: lost by this process's clock; its release is still sent.
  enum class State : uint8_t { kHeld, kLapsed, kReleasing, kEnded };
  // resourceTimeoutStrategy.
  enum class TimedOut : uint8_t { kServerTakes = 0, kRelease = 1, kKeep = 2 };
  using OnLost = std::function<void(const Grant&, const std::string&)>;

  Grant grant;
  Value param{};
  KeepMode keep = KeepMode::kOff;
  OnLost on_lost{};  // Once the token is lost, it belongs to the thread that runs callbacks.
  // For a release. Destroy it without the mutex: user code.
  OnLost TakeOnLost() { return state == State::kHeld ? std::exchange(on_lost, nullptr) : OnLost(); }

  // The request id if an attempt of its acquire may still arrive. A group shares it.
  std::shared_ptr<const uint64_t> stray{};
  // The request id, once, if the last token of its acquire ends: cancel it.
  std::optional<uint64_t> TakeStray() {
    const std::shared_ptr<const uint64_t> taken = std::exchange(stray, nullptr);
    return taken.use_count() == 1 ? std::optional(*taken) : std::nullopt;
  }

  State state = State::kHeld;
  int64_t granted_ms = 0;                                  // When it was asked for.
  int64_t confirmed_ms = 0;                                // When the grant or last keep was sent.
  int64_t hold_ms = 0;                                     // As of that.
  std::optional<wire::Terms> terms{};                      // None: of an older server, or adopted.
  int64_t due_ms = 0;                                      // When to look after it next; 0: never.
  std::set<std::pair<int64_t, uint64_t>>::iterator due{};  // HeldTokens', unless due_ms is 0.

  Validity validity{};
  std::string lost_reason{};  // Written before `lost`, and never after it.
  std::atomic<bool> lost{false};

  TimedOut strategy() const {
    if (!terms) return TimedOut::kKeep;
    return terms->strategy <= 2 ? static_cast<TimedOut>(terms->strategy) : TimedOut::kServerTakes;
  }
  bool IsKept() const {
    return keep == KeepMode::kAlways ||
           (keep == KeepMode::kByRule && strategy() == TimedOut::kKeep);
  }
  // When a kRelease is due, shortly before resourceTimeout. INT64_MAX: never.
  int64_t EndByRule() const;

  // Needs no Tick. Once true, it stays true.
  bool IsLost(int64_t now_ms) const {
    if (lost.load(std::memory_order_acquire) || expired_.load(std::memory_order_relaxed)) {
      return true;
    }
    if (now_ms < validity.until_ms()) return false;
    expired_.store(true, std::memory_order_relaxed);
    return true;
  }
  // REQUIRES: IsLost.
  std::string LostReason() const {
    return lost.load(std::memory_order_acquire) ? lost_reason : validity.reason();
  }

 private:
  mutable std::atomic<bool> expired_{false};  // Somebody was told that it is lost.
};

using HeldPtr = std::shared_ptr<Held>;

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_HELD_H_
