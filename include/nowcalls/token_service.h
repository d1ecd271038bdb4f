// TokenService: grants tokens for calls in progress, counts calls a second.
//
// nowcalls::Client is one over a connection, nowcalls::Embedded one within the process. One of your
// own implements the pure virtual members, and may pass on permits of others.
//
// Thread: any. Callbacks run one at a time on the service's own thread. They must be short, and
// must not wait: a blocking call in a callback answers kBadRequest at once. Exceptions are caught
// and logged.
//
// A closed service answers acquires and requests with kBadRequest: do not ask again. Its callbacks
// run one at a time on an asking thread; one that asks without end is destroyed untold.
#ifndef NOWCALLS_TOKEN_SERVICE_H_
#define NOWCALLS_TOKEN_SERVICE_H_

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nowcalls/answer.h"
#include "nowcalls/export.h"
#include "nowcalls/permit.h"
#include "nowcalls/types.h"

namespace nowcalls {

// The value of a rule's parameter; monostate: none. An integer of 32 bits is an int, else a long. A
// string: UTF-8, at most kParamBytesMax bytes.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

// Who keeps a token beyond its hold. A keep is sent at a third of the hold.
enum class KeepMode : uint8_t {
  // By the rule's resourceTimeoutStrategy. 0, the default: nobody, so a hung call gives its room
  // back at the end of the hold. 1: the service releases it at resourceTimeout, and the permit is
  // lost. 2: the service keeps it.
  kByRule,
  kAlways,
  kOff,
};

struct AcquireOptions {
  uint32_t count = 1;  // Calls that the token stands for, 1 .. 2^31-1.
  // For room, at most an hour. None: no wait, unless the rule lets prioritized calls wait.
  std::optional<Milliseconds> wait{};
  bool prioritized = false;  // Waits before those that are not.
  Value param{};
  Milliseconds hold{0};  // Less than the rule's hold for this token; 0: as long as the rule allows.
  // Of the call beside its wait, connecting included; none: the service's.
  std::optional<Milliseconds> timeout{};
  KeepMode keep = KeepMode::kByRule;
  // Of a group with rates: as of RequestOptions.
  bool sleep = true;
  // Called once if the token is lost; `reason` as of Permit::lost_reason. It may run during the
  // permit's release and after: its references must outlive the service.
  std::function<void(const Grant& grant, const std::string& reason)> on_lost{};
};

struct [[nodiscard]] Acquired : Answer {
  Permit permit{};  // Of a grant.
};

// One flow of a group; count and param of AcquireOptions are not used.
struct FlowDemand {
  FlowId flow{};
  uint32_t count = 1;
  Value param{};
  bool rate = false;  // It asks for calls a second, as Request does, and has no token.
};

struct [[nodiscard]] AllAcquired : Answer {
  // Of a grant: one for each demand, in order; empty for a rate.
  std::vector<Permit> permits{};
  Milliseconds wait{0};  // Make the calls after this time, as of Passed.
};

struct RequestOptions {
  uint32_t count = 1;
  bool prioritized = false;  // May borrow from the next window, and then waits.
  std::optional<Milliseconds> timeout{};
  // Be told only when the calls may be made. If that is beyond the timeout, or the service closes
  // meanwhile, Passed::wait tells the time left.
  bool sleep = true;
};

class NOWCALLS_EXPORT TokenService {
 public:
  virtual ~TokenService();

  // Asks for one token. `done` is called exactly once, at the latest after wait + timeout.
  virtual void AcquireAsync(FlowId flow, const AcquireOptions& options,
                            std::function<void(Acquired)> done) = 0;
  // Asks for a token of each flow, all or none, holding nothing while it waits. 1 .. 64 demands,
  // each of another flow or parameter. Rates count only with the whole group. A group of rates
  // alone is treated as a request when its answer is lost.
  virtual void AcquireAllAsync(const std::vector<FlowDemand>& demands,
                               const AcquireOptions& options,
                               std::function<void(AllAcquired)> done) = 0;
  // Asks for `count` calls under a rule that limits calls a second. Not asked again when its answer
  // is lost: it may have been counted.
  virtual void RequestAsync(FlowId flow, const RequestOptions& options,
                            std::function<void(Passed)> done) = 0;
  // The same for each value of a rule's parameter, all or none.
  virtual void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                                 const RequestOptions& options,
                                 std::function<void(Passed)> done) = 0;
  virtual bool OnOwnThread() const = 0;

  // The same, waiting for the answer.
  virtual Acquired Acquire(FlowId flow, const AcquireOptions& options = {});
  virtual AllAcquired AcquireAll(const std::vector<FlowDemand>& demands,
                                 const AcquireOptions& options = {});
  virtual Passed Request(FlowId flow, const RequestOptions& options = {});
  virtual Passed RequestParam(FlowId flow, const std::vector<Value>& values,
                              const RequestOptions& options = {});

  // The same as futures, which the service's own thread makes ready.
  std::future<Acquired> AcquireFuture(FlowId flow, const AcquireOptions& options = {});
  std::future<AllAcquired> AcquireAllFuture(const std::vector<FlowDemand>& demands,
                                            const AcquireOptions& options = {});
  std::future<Passed> RequestFuture(FlowId flow, const RequestOptions& options = {});
  std::future<Passed> RequestParamFuture(FlowId flow, const std::vector<Value>& values,
                                         const RequestOptions& options = {});
};

}  // namespace nowcalls

#endif  // NOWCALLS_TOKEN_SERVICE_H_
