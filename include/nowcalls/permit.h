// Permit: a token that is held, as an object that gives it back when it is destroyed.
//
// Thread: a permit is used by one thread at a time, and may move between threads; lost() may be
// asked by any thread meanwhile. It may outlive the service that granted it.
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

// What was granted.
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

// Who stands behind a permit. A TokenService of your own that issues permits implements it.
class NOWCALLS_EXPORT Hold {
 public:
  explicit Hold(const Grant& grant) : grant_(grant) {}
  virtual ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const Grant& grant() const { return grant_; }
  // Called once, by the permit. `done`, which may be empty, is called once, on any thread.
  virtual void Release(CallOutcome outcome, std::function<void(Released)> done) = 0;
  virtual void Keep(std::function<void(Kept)> done) = 0;
  // The same, waiting for the answer.
  virtual Released ReleaseAndWait(CallOutcome outcome);
  virtual Kept KeepAndWait();
  // Any thread.
  virtual bool lost() const = 0;
  virtual std::string lost_reason() const = 0;
  // As of Permit. By default without an end.
  virtual Milliseconds valid_until() const { return Milliseconds::max(); }
  virtual Milliseconds valid_for() const;
  // Whether the caller is on the thread that would call `done`, so that waiting would hang.
  virtual bool OnOwnThread() const = 0;

 private:
  const Grant grant_;
};

class [[nodiscard]] NOWCALLS_EXPORT Permit {
 public:
  // Holds nothing.
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

  // Whether it holds a token that it has not released. A lost one counts.
  explicit operator bool() const { return hold_ != nullptr; }
  // REQUIRES, as for all that follow: operator bool, unless they say what else holds.
  const Grant& grant() const { return hold_->grant(); }
  TokenId token() const { return grant().token; }
  Fence fence() const { return grant().fence; }

  // The token ended without a release, or may have by now, as valid_until says: another call may
  // have its room. Stop the call if it can be stopped. Once true, it stays true.
  bool lost() const { return hold_ != nullptr && hold_->lost(); }
  // The server's word for why, such as "admin" or "resource_timeout"; empty if unknown. A permit
  // that is lost by the client's own clock: "resource_timeout" or "client_offline".
  std::string lost_reason() const { return hold_ != nullptr ? hold_->lost_reason() : ""; }

  // Until when the token is surely the caller's own, on CLOCK_BOOTTIME. That is the end of its
  // hold, or of clientOfflineTime since the last contact: the earlier one, less 1 % and 2 ms. Keeps
  // and contact move it on. max(): it has no end, since it is local or adopted.
  Milliseconds valid_until() const { return hold_->valid_until(); }
  // What is left of that; 0: it is lost.
  Milliseconds valid_for() const { return hold_->valid_for(); }

  // Gives the token back and waits for the answer, at most as long as a call may take. The release
  // goes on in the background if no answer comes. Of a permit that holds nothing: ok. `outcome`
  // tells operators how the call ended. A lost token is released too, unless the server took it.
  Released Release(CallOutcome outcome = CallOutcome::kOk);
  // The same without waiting. The destructor does this, as of a call that ended well.
  void ReleaseAsync(CallOutcome outcome, std::function<void(Released)> done = {});
  void ReleaseAsync(std::function<void(Released)> done = {}) {
    ReleaseAsync(CallOutcome::kOk, std::move(done));
  }
  // Renews the hold now. See KeepMode for what renews it by itself.
  Kept Keep();
  void KeepAsync(std::function<void(Kept)> done);

 private:
  std::shared_ptr<Hold> hold_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_PERMIT_H_
