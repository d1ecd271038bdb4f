// TokenService: grants tokens for calls in progress, and counts calls a second.
//
// nowcalls::Client is one, at the other end of a connection; nowcalls::Embedded is one within the
// process. One of your own can stand before others, to choose one by flow, to count, or to log: it
// implements what is pure virtual here and passes permits on as they are.
//
// Thread: any. Callbacks run one at a time on the service's own thread. They must be short, and
// must not wait: a blocking call within a callback answers kBadRequest at once. What a callback
// throws is caught and logged.
//
// A closed service answers acquires and requests with kBadRequest: do not ask again. Its callbacks
// run one at a time on a thread that asks. A callback that asks again each time, without end, is
// destroyed with the service without being told.
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

// The value of a rule's parameter; monostate: there is none. An integer that fits 32 bits is an
// int, else a long. A string is UTF-8 of at most kParamBytesMax bytes.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

// Who keeps a token that is held for long. A keep is sent at a third of the hold.
enum class KeepMode : uint8_t {
  // As the rule's resourceTimeoutStrategy says. 0, the default: nobody keeps it, so a call that
  // hangs gives its room back at the end of the hold. 1: the service releases it at the rule's
  // resourceTimeout, and the permit is lost. 2: the service keeps it.
  kByRule,
  kAlways,
  kOff,
};

struct AcquireOptions {
  uint32_t count = 1;  // Calls that the token stands for, 1 .. 2^31-1.
  // How long to wait for room, at most an hour. None: not at all, unless the rule lets prioritized
  // calls wait.
  std::optional<Milliseconds> wait{};
  bool prioritized = false;  // Waits before those that are not.
  Value param{};
  Milliseconds hold{0};  // Less than the rule's hold for this token; 0: as long as the rule allows.
  // What the call may take beside its wait, connecting included; none: as the service was told.
  std::optional<Milliseconds> timeout{};
  KeepMode keep = KeepMode::kByRule;
  // Of a group with rates: be told when its calls may be made, as of RequestOptions.
  bool sleep = true;
  // Called once if the token is lost, with the reason as of Permit::lost_reason. It may run while
  // the permit is released, and after that: what it refers to must outlive the service.
  std::function<void(const Grant& grant, const std::string& reason)> on_lost{};
};

struct [[nodiscard]] Acquired : Answer {
  Permit permit{};  // Of a grant.
};

// One of several flows that are acquired together. count and param are those of the item; those of
// AcquireOptions are not used.
struct FlowDemand {
  FlowId flow{};
  uint32_t count = 1;
  Value param{};
  bool rate = false;  // It asks for calls a second, as Request does, and has no token.
};

struct [[nodiscard]] AllAcquired : Answer {
  // Of a grant: one for each demand, in their order. That of a rate is empty.
  std::vector<Permit> permits{};
  Milliseconds wait{0};  // Make the calls after this time, as of Passed.
};

struct RequestOptions {
  uint32_t count = 1;
  bool prioritized = false;  // May borrow from the next window, and then waits.
  std::optional<Milliseconds> timeout{};
  // If the calls are to be made only after a while, be told after it. If that is beyond the
  // timeout, or the service is closed meanwhile, Passed::wait tells what is left.
  bool sleep = true;
};

class NOWCALLS_EXPORT TokenService {
 public:
  virtual ~TokenService();

  // Asks for one token. `done` is called exactly once, at the latest when the wait and the timeout
  // are over.
  virtual void AcquireAsync(FlowId flow, const AcquireOptions& options,
                            std::function<void(Acquired)> done) = 0;
  // Asks for a token of each flow, all or none, holding nothing while it waits. 1 .. 64 demands,
  // each of another flow or parameter. Rates among them are counted only with the whole group; a
  // group of rates alone is not asked again when its answer is lost, as a request is not.
  virtual void AcquireAllAsync(const std::vector<FlowDemand>& demands,
                               const AcquireOptions& options,
                               std::function<void(AllAcquired)> done) = 0;
  // Asks whether `count` calls may be made now under a rule that limits calls a second. It is not
  // asked again when its answer is lost, since it may have been counted.
  virtual void RequestAsync(FlowId flow, const RequestOptions& options,
                            std::function<void(Passed)> done) = 0;
  // The same of each of the values, under a rule with a parameter: of all of them or of none.
  virtual void RequestParamAsync(FlowId flow, const std::vector<Value>& values,
                                 const RequestOptions& options,
                                 std::function<void(Passed)> done) = 0;
  // Whether the caller is on the thread that runs callbacks.
  virtual bool OnOwnThread() const = 0;

  // The same, waiting for the answer. They wait for the asynchronous ones, unless the service has a
  // quicker way.
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
