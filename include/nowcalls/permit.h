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
  virtual void Release(std::function<void(Released)> done) = 0;
  virtual void Keep(std::function<void(Kept)> done) = 0;
  // The same, waiting for the answer.
  virtual Released ReleaseAndWait();
  virtual Kept KeepAndWait();
  // Any thread.
  virtual bool lost() const = 0;
  virtual std::string lost_reason() const = 0;
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
  ~Permit() { ReleaseAsync(); }
  Permit(Permit&& other) noexcept = default;
  Permit& operator=(Permit&& other) noexcept {
    if (this != &other) {
      ReleaseAsync();
      hold_ = std::move(other.hold_);
    }
    return *this;
  }

  // Whether it holds a token that it has not released. A lost one counts.
  explicit operator bool() const { return hold_ != nullptr; }
  // REQUIRES, as for the next four: operator bool.
  const Grant& grant() const { return hold_->grant(); }
  TokenId token() const { return grant().token; }
  Fence fence() const { return grant().fence; }

  // The token ended without a release: another call may have its room. Stop the call if it can be
  // stopped.
  bool lost() const { return hold_ != nullptr && hold_->lost(); }
  // The server's word for why, such as "admin" or "resource_timeout"; empty if unknown.
  std::string lost_reason() const { return hold_ != nullptr ? hold_->lost_reason() : ""; }

  // Gives the token back and waits for the answer, at most as long as a call may take. The release
  // goes on in the background if no answer comes. Of a permit that holds nothing: ok.
  Released Release();
  // The same without waiting. The destructor does this.
  void ReleaseAsync(std::function<void(Released)> done = {});
  // Renews the hold now. Permits are kept by themselves unless they were asked not to be.
  Kept Keep();
  void KeepAsync(std::function<void(Kept)> done);

 private:
  std::shared_ptr<Hold> hold_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_PERMIT_H_
