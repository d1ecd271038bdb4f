// TokenService: grants tokens for calls in progress, and counts calls a second.
//
// nowcalls::Client is one, at the other end of a connection; nowcalls::Embedded is one within the
// process. One of your own can stand before others, to choose one by flow, to count, or to log: it
// implements what is pure virtual here and passes permits on as they are.
//
// Thread: any. Callbacks run one at a time on the service's own thread. They must be short, must
// not throw, and must not wait: a blocking call within a callback answers kBadRequest at once.
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
  // The service keeps it, unless the rule's resourceTimeoutStrategy is 1: then it releases the
  // token at the rule's resourceTimeout, and the permit is lost.
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
};

struct [[nodiscard]] AllAcquired : Answer {
  std::vector<Permit> permits{};  // Of a grant: one for each demand, in their order.
};

struct RequestOptions {
  uint32_t count = 1;
  bool prioritized = false;  // May borrow from the next window, and is then told to wait.
  std::optional<Milliseconds> timeout{};
};

class NOWCALLS_EXPORT TokenService {
 public:
  virtual ~TokenService();

  // Asks for one token. `done` is called exactly once, at the latest when the wait and the timeout
  // are over.
  virtual void AcquireAsync(FlowId flow, const AcquireOptions& options,
                            std::function<void(Acquired)> done) = 0;
  // Asks for a token of each flow, all or none, holding nothing while it waits. 1 .. 64 demands,
  // each of another flow or parameter.
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
