// Answer: how a call to a TokenService ended.
//
// Thread: any; plain values. Every call ends with exactly one. `outcome` says what the caller may
// do
// next, `message` tells a person.
#ifndef NOWCALLS_ANSWER_H_
#define NOWCALLS_ANSWER_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/types.h"

namespace nowcalls {

using Milliseconds = std::chrono::milliseconds;

enum class Outcome : uint8_t {
  kOk,           // Granted, passed, released or kept.
  kRefused,      // By a limit, which refused_by names. Surely nothing is held.
  kNoRule,       // The flow has no rule, so nothing limits the call: the caller decides.
  kBadRequest,   // The caller's mistake: wrong arguments, a closed client, a callback that waits.
                 // Or a server that does not know the request. Asking again does not help.
  kUnavailable,  // Surely not carried out: no server was reached in time, or it failed.
  kUnknown,      // Perhaps carried out: it was sent, and no answer came in time.
  kPermissionDenied,  // The server does not let this client in, or not to this flow. Nothing is
                      // held.
};

// "ok", "refused", "no_rule", "bad_request", "unavailable", "unknown", "permission_denied".
constexpr std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: return "ok";
    case Outcome::kRefused: return "refused";
    case Outcome::kNoRule: return "no_rule";
    case Outcome::kBadRequest: return "bad_request";
    case Outcome::kUnavailable: return "unavailable";
    case Outcome::kUnknown: return "unknown";
    case Outcome::kPermissionDenied: return "permission_denied";
  }
  return "?";
}

struct Acquired;     // In token_service.h.
struct AllAcquired;  // In token_service.h.

struct Answer {
  Answer() = default;
  // A sliced grant would give its token back at once.
  Answer(Acquired&&) = delete;  // NOLINT(google-explicit-constructor): so that = is refused, too.
  Answer(AllAcquired&&) = delete;  // NOLINT(google-explicit-constructor)

  Outcome outcome = Outcome::kUnavailable;
  RefusedBy refused_by = RefusedBy::kNone;
  // By the client's fallback.
  bool local = false;
  FlowId flow{};           // Of a refusal of several flows: the one that has no room.
  uint64_t now_calls = 0;  // Calls in progress, those of a grant included.
  uint64_t level = 0;      // The most that the rule allows.
  std::string message{};   // Empty if ok.

  bool ok() const { return outcome == Outcome::kOk; }
  explicit operator bool() const { return ok(); }
};

// Of a request for calls a second.
struct Passed : Answer {
  int64_t remaining = -1;  // Calls that the window has left; -1: nobody can tell.
  Milliseconds wait{0};    // Make the call after this time; it is counted already. 0 if slept.
};

// Of a release. ok() also when the token had ended before: see `lost`.
struct Released : Answer {
  bool lost = false;  // The token had ended before: its room may have been another's.
};

// Of a keep. kRefused: the token has ended.
struct Kept : Answer {
  Milliseconds hold{0};  // How long the token lives from now.
};

}  // namespace nowcalls

#endif  // NOWCALLS_ANSWER_H_
