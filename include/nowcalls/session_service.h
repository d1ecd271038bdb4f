// SessionService: the common base of Client and Embedded: one session and its thread.
//
// Thread: any, for all members.
#ifndef NOWCALLS_SESSION_SERVICE_H_
#define NOWCALLS_SESSION_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nowcalls/export.h"
#include "nowcalls/status.h"
#include "nowcalls/token_service.h"

namespace nowcalls {

namespace library {
class Front;  // Opaque to programs.
}  // namespace library

// Counters begin with the service.
struct ClientStats {
  bool connected = false;
  std::string address{};      // The last one dialled.
  std::string why_offline{};  // Empty while connected.
  std::string client_id{};    // As used.
  uint64_t sessions_online = 0;
  uint64_t held = 0;         // Tokens of permits that are not local.
  uint64_t calls = 0;        // In progress: asked and not answered.
  uint64_t connects = 0;     // Connections that said hello.
  uint64_t disconnects = 0;  // Of these, ended.
  uint64_t asked_again = 0;  // Calls that were sent once more.
  uint64_t cancelled = 0;    // Acquires that were given up after they were sent.
  uint64_t kept = 0;
  uint64_t lost = 0;
  uint64_t local_granted = 0;
  uint64_t local_refused = 0;
  uint64_t local_passed = 0;
};

class NOWCALLS_EXPORT SessionService : public TokenService {
 public:
  // As Close with a timeout of one second; in a callback without waiting.
  ~SessionService() override;

  void AcquireAsync(FlowId flow, const AcquireOptions& options,
                    std::function<void(Acquired)> done) override;
  void AcquireAllAsync(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                       std::function<void(AllAcquired)> done) override;
  void RequestAsync(FlowId flow, const RequestOptions& options,
                    std::function<void(Passed)> done) override;
  void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                         const RequestOptions& options, std::function<void(Passed)> done) override;
  Acquired Acquire(FlowId flow, const AcquireOptions& options = {}) override;
  AllAcquired AcquireAll(const std::vector<FlowDemand>& demands,
                         const AcquireOptions& options = {}) override;
  Passed Request(FlowId flow, const RequestOptions& options = {}) override;
  Passed RequestParam(FlowId flow, const std::vector<Value>& values,
                      const RequestOptions& options = {}) override;
  bool OnOwnThread() const override;

  ClientStats stats() const;

  // A permit for a token of the session, such as one taken over (ClientOptions::rejoin). A keep or
  // a release tells whether it is held. Permits for one token are one: the first release ends it
  // for all, and it is kept if one asks for that.
  Permit Adopt(TokenId token, FlowId flow, KeepMode keep = KeepMode::kOff);

  // Ends unanswered calls as kUnavailable or kUnknown. Then waits at most `timeout` for the answers
  // to releases and cancels. Held tokens stay with the server for the rule's clientOfflineTime from
  // now. kOutcomeUnknown: some release has no answer. kFailedPrecondition: in a callback; nothing
  // was done.
  Status Close(Milliseconds timeout);

 protected:
  explicit SessionService(std::shared_ptr<library::Front> front);
  library::Front* front() const { return front_.get(); }

 private:
  const std::shared_ptr<library::Front> front_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_SESSION_SERVICE_H_
