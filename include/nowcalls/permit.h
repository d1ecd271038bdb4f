// Permit: a held token; the destructor gives it back.
//
// Thread: one at a time, may move between threads; any thread may call lost() meanwhile. A permit
// may outlive its service.
#ifndef NOWCALLS_PERMIT_H_
#define NOWCALLS_PERMIT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nowcalls/answer.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/export.h"
#include "nowcalls/types.h"

namespace nowcalls {

struct Grant {
  FlowId flow{};
  uint32_t count = 0;
  TokenId token{};         // 0 if local.
  Fence fence{};           // Pass it to a resource that can refuse older ones. 0 if local.
  uint64_t now_calls = 0;  // Calls in progress under the rule at the grant, these included.
  uint64_t level = 0;
  Milliseconds hold{0};  // How long the token lives without a keep.
  bool local = false;    // Granted by the client's fallback: no server knows of it.
};

// The holder behind a permit. A TokenService of your own that issues permits implements it.
class NOWCALLS_EXPORT Hold {
 public:
  explicit Hold(const Grant& grant) : grant_(grant) {}
  virtual ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const Grant& grant() const { return grant_; }
  // Called once, by the permit. `done` may be empty; called once, on any thread.
  virtual void Release(CallOutcome outcome, std::function<void(Released)> done) = 0;
  virtual void Keep(std::function<void(Kept)> done) = 0;
  // The same, waiting for the answer.
  virtual Released ReleaseAndWait(CallOutcome outcome);
  virtual Kept KeepAndWait();
  // Thread: any.
  virtual bool lost() const = 0;
  virtual std::string lost_reason() const = 0;
  // As of Permit.
  virtual Milliseconds valid_until() const { return Milliseconds::max(); }
  virtual Milliseconds valid_for() const;
  // Whether this thread would call `done`, so that waiting would hang.
  virtual bool OnOwnThread() const = 0;

 private:
  const Grant grant_;
};

class [[nodiscard]] NOWCALLS_EXPORT Permit {
 public:
  Permit() = default;
  explicit Permit(std::shared_ptr<Hold> hold) : hold_(std::move(hold)) {}
  ~Permit() { ReleaseAsync(CallOutcome::kOk); }
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      ReleaseAsync(CallOutcome::kOk);
      hold_ = std::move(other.hold_);
    }
    return *this;
  }

  // Whether it holds an unreleased token, also a lost one.
  explicit operator bool() const { return hold_ != nullptr; }
  // REQUIRES: operator bool, also below unless said otherwise.
  const Grant& grant() const { return hold_->grant(); }
  TokenId token() const { return grant().token; }
  Fence fence() const { return grant().fence; }

  // The token ended without a release, or valid_until has passed: another call may have its room.
  // Stop the call if it can be stopped. Once true, it stays true.
  bool lost() const { return hold_ != nullptr && hold_->lost(); }
  // The server's word, such as "admin" or "resource_timeout"; empty: unknown. By the client's own
  // clock: "resource_timeout" or "client_offline".
  std::string lost_reason() const { return hold_ != nullptr ? hold_->lost_reason() : ""; }

  // Until when the token is surely the caller's own, on CLOCK_BOOTTIME. The earlier end of its hold
  // or of clientOfflineTime since the last contact, less 1 % and 2 ms. Keeps and contact move it
  // on. max(): no end; local, or adopted and not kept yet.
  Milliseconds valid_until() const { return hold_->valid_until(); }
  // The time left; 0: lost.
  Milliseconds valid_for() const { return hold_->valid_for(); }

  // Gives the token back and waits for the answer, at most the timeout. Without an answer the
  // release goes on in the background. Nothing held: ok. `outcome` tells operators how the call
  // ended. A lost token is released too, unless the server took it.
  Released Release(CallOutcome outcome = CallOutcome::kOk);
  // The same without waiting. The destructor does it with kOk.
  void ReleaseAsync(CallOutcome outcome, std::function<void(Released)> done = {});
  void ReleaseAsync(std::function<void(Released)> done = {}) {
    ReleaseAsync(CallOutcome::kOk, std::move(done));
  }
  Kept Keep();
  void KeepAsync(std::function<void(Kept)> done);

 private:
  std::shared_ptr<Hold> hold_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_PERMIT_H_
