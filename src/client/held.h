// Held: a token that a session holds, or a local one.
//
// Thread: the session's, but for `lost` and then `lost_reason`, which any thread may read.
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

#include "nowcalls/permit.h"
#include "nowcalls/token_service.h"

namespace nowcalls::client {

struct Held {
  enum class State : uint8_t { kHeld, kReleasing, kEnded };
  using OnLost = std::function<void(const Grant&, const std::string&)>;

  Grant grant;
  Value param{};
  KeepMode keep = KeepMode::kOff;
  OnLost on_lost{};  // Once the token is lost, it belongs to the thread that runs callbacks.
  // For a release: on_lost, which will not be called any more. The caller destroys it outside the
  // session, since its destructor is a user's code.
  OnLost TakeOnLost() { return state == State::kHeld ? std::exchange(on_lost, nullptr) : OnLost(); }

  // The request id if an attempt of its acquire may still arrive; the tokens of a group share it.
  std::shared_ptr<const uint64_t> stray{};
  // The request id, once, if the last token of its acquire ends. It stands for nothing then, and an
  // attempt that arrives later would be granted anew: cancel it.
  std::optional<uint64_t> TakeStray() {
    const std::shared_ptr<const uint64_t> taken = std::exchange(stray, nullptr);
    return taken.use_count() == 1 ? std::optional(*taken) : std::nullopt;
  }

  State state = State::kHeld;
  int64_t granted_ms = 0;
  int64_t hold_ms = 0;                                     // As of the grant or the last keep.
  int64_t due_ms = 0;                                      // When to look after it next; 0: never.
  std::set<std::pair<int64_t, uint64_t>>::iterator due{};  // HeldTokens', unless due_ms is 0.

  std::string lost_reason{};  // Written before `lost`, and never after it.
  std::atomic<bool> lost{false};
};

using HeldPtr = std::shared_ptr<Held>;

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_HELD_H_
