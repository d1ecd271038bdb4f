// exec: acquires, runs the command below a guard, releases. acquire, release and keep for scripts.
//
// Happy path: the grant rings a bell; the command runs while the client keeps the token; its end
// releases the token and gives the exit code.
//
// Failure modes:
//   a signal during the wait   the answer is refused, so that a grant at that moment is given back
//   no server                  --fallback decides; the command may run without a token
//   the server does not permit it  125, whatever the fallback is
//   the command cannot run     126 or 127, and the token is released
//   the token is lost          --on-lost decides; the guard acts, also if this process is stopped
#include "command/exec.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "client/flow_text.h"
#include "command/complain.h"
#include "command/running.h"
#include "nowcalls/client.h"

namespace nowcalls::command {
namespace {

constexpr Milliseconds kCloseTimeout{2000};
constexpr int64_t kTellAgainMinMs = 10;
constexpr int64_t kTellAgainMaxMs = 60'000;

void ComplainOfExec(const Arguments& arguments, const std::string& what) {
  if (!arguments.quiet) Complain(what);
}

// Wakes the main thread, which polls.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Bell() {
    if (fd_ >= 0) close(fd_);
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const { return fd_; }
  void Ring() const {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof(one));
  }
  void Silence() const {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(fd_, &count, sizeof(count));
  }

 private:
  const int fd_;
};

// Lost tokens, told on the client's thread and read on the main one: at most kAcquireAllMax.
class LostTokens {
 public:
  int fd() const { return bell_.fd(); }
  void Tell(const Grant& grant, const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (!what_.empty()) what_ += "; ";
      what_ += "lost token " + std::to_string(grant.token.value) + " of " +
               client::FlowText(grant.flow) + ": " +
               (reason.empty() ? "its time was over, or it was taken back" : reason);
    }
    bell_.Ring();
  }
  // Empty: nothing is new.
  std::string Take() {
    bell_.Silence();
    const std::lock_guard lock(mutex_);
    return std::exchange(what_, {});
  }

 private:
  const Bell bell_;
  std::mutex mutex_;
  std::string what_;
};

// The answer to an acquire, put here on the client's thread.
class Answered {
 public:
  int fd() const { return bell_.fd(); }
  void Put(AllAcquired answer) {
    const std::lock_guard lock(mutex_);
    if (unwanted_) return;  // Its permits give the tokens back.
    answer_ = std::move(answer);
    bell_.Ring();
  }
  AllAcquired Take() {
    const std::lock_guard lock(mutex_);
    return std::move(answer_);
  }
  // An answer that is there or comes is given back.
  void Refuse() {
    const std::lock_guard lock(mutex_);
    unwanted_ = true;
    answer_ = AllAcquired();
  }

 private:
  const Bell bell_;
  std::mutex mutex_;
  bool unwanted_ = false;
  AllAcquired answer_;
};

// Exit code of an acquire of exec that was not granted.
int ExitCodeOf(const Arguments& arguments, const Answer& answer) {
  switch (answer.outcome) {
    case Outcome::kRefused:
      if (arguments.refused_code >= 0) return arguments.refused_code;
      return answer.refused_by == RefusedBy::kQueueTimeout ? kExitWaitedInVain : kExitRefused;
    case Outcome::kNoRule: return kExitNoRule;
    case Outcome::kBadRequest: return kExitUsage;
    case Outcome::kPermissionDenied: return kExitDenied;
    default: return kExitUnreachable;
  }
}

void AcquireFlows(Client* client, const Arguments& arguments, const AcquireOptions& options,
                  std::function<void(AllAcquired)> done) {
  if (arguments.flows.size() > 1) {
    return client->AcquireAllAsync(arguments.flows, options, std::move(done));
  }
  const FlowDemand& demand = arguments.flows.front();
  AcquireOptions one = options;
  one.count = demand.count;
  one.param = demand.param;
  client->AcquireAsync(demand.flow, one, [done = std::move(done)](Acquired acquired) {
    AllAcquired all;
    const Answer& answer = acquired;
    static_cast<Answer&>(all) = answer;
    if (acquired.ok()) all.permits.push_back(std::move(acquired.permit));
    done(std::move(all));
  });
}

std::string Joined(const std::vector<Permit>& permits, std::string (*of)(const Grant&)) {
  std::string text;
  for (const Permit& permit : permits) {
    text += (text.empty() ? "" : ",") + of(permit.grant());
  }
  return text;
}

// For the command. Not the client id: the session is this process's alone.
std::vector<std::pair<std::string, std::string>> VariablesOf(const ClientOptions& client,
                                                             const std::vector<Permit>& permits) {
  std::string servers;
  for (const std::string& address : client.addresses) {
    servers += (servers.empty() ? "" : ",") + address;
  }
  return {
      {"NOWCALLS_SERVER", servers},
      {"NOWCALLS_NAMESPACE", client.name_space},
      {"NOWCALLS_TOKEN_ID",
       Joined(permits, [](const Grant& g) { return std::to_string(g.token.value); })},
      {"NOWCALLS_FENCE",
       Joined(permits, [](const Grant& g) { return std::to_string(g.fence.value); })},
      {"NOWCALLS_FLOW_ID",
       Joined(permits, [](const Grant& g) { return client::FlowWord(g.flow); })},
  };
}

bool IsLocal(const AllAcquired& acquired) {
  return !acquired.permits.empty() && acquired.permits.front().grant().local;
}

// Until when all permits are surely held.
int64_t ValidToMs(const std::vector<Permit>& permits) {
  int64_t valid_to_ms = INT64_MAX;
  for (const Permit& permit : permits) {
    valid_to_ms = std::min<int64_t>(valid_to_ms, permit.valid_until().count());
  }
  return valid_to_ms;
}

// Tells the guard until when the command may run. Returns in how many ms to tell again: a quarter
// of the time left, since keeps and contact move the end on. -1: never.
int TellValidTo(const std::vector<Permit>& permits, Running* running) {
  const int64_t valid_to_ms = ValidToMs(permits);
  if (valid_to_ms == INT64_MAX) return -1;
  running->TellValidTo(valid_to_ms);
  const int64_t left_ms = valid_to_ms - BoottimeMs();
  return static_cast<int>(std::clamp(left_ms / 4, kTellAgainMinMs, kTellAgainMaxMs));
}

// Waits until the command has ended; tells guard and user of a lost token.
Ended WaitFor(const Arguments& arguments, const std::vector<Permit>& permits, Running* running,
              LostTokens* lost) {
  const bool guarded = arguments.on_lost != OnLost::kIgnore;
  bool told = false;
  for (;;) {
    const auto ended = running->Wait(lost->fd(), guarded ? TellValidTo(permits, running) : -1);
    std::string what = lost->Take();
    // The guard's own clock was faster than the client's.
    if (what.empty() && ended && ended->was_lost && !told) what = "lost the token";
    if (!what.empty()) {
      if (!ended) running->TellLost();  // Before stderr, which may hang.
      ComplainOfExec(arguments, what);
      told = true;
    }
    if (ended) return *ended;
  }
}

// What the server hears of the call.
CallOutcome OutcomeOf(const Ended& ended) {
  if (ended.was_lost) return CallOutcome::kTimeout;
  return ended.exit_code == 0 ? CallOutcome::kOk : CallOutcome::kFailed;
}

int StartFailed(const Arguments& arguments, int error) {
  ComplainOfExec(arguments, "cannot run " + arguments.argv.front() + ": " +
                                std::generic_category().message(error));
  return error == ENOENT ? kExitNotFound : kExitCannotRun;
}

Result<std::unique_ptr<Client>> StartClient(const Arguments& arguments) {
  Result<std::unique_ptr<Client>> client = Client::Start(arguments.client);
  if (!client.ok()) Complain(client.status().message());
  return client;
}

// Of commands for scripts.
int Complained(const Answer& answer) {
  Complain(answer.message);
  switch (answer.outcome) {
    case Outcome::kBadRequest: return kExitUsage;
    case Outcome::kUnavailable:
    case Outcome::kUnknown: return kExitUnavailable;
    default: return kExitFailure;
  }
}

// Names hold no control characters.
std::string JsonString(const std::string& text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + "\"";
}

// A name is a string of JSON.
std::string WordOf(FlowId flow, bool json) {
  const std::string word = client::FlowWord(flow);
  return json && flow.value < 0 ? JsonString(word) : word;
}

// False: the output cannot be written.
bool TellTokens(const Arguments& arguments, const std::vector<Permit>& permits) {
  for (const Permit& permit : permits) {
    const Grant& grant = permit.grant();
    std::printf(arguments.json
                    ? "{\"token\":\"%llu\",\"flow_id\":%s,\"fence\":%llu,\"hold_ms\":%lld}\n"
                    : "token %llu, flow %s, fence %llu, to hold %lld ms\n",
                static_cast<unsigned long long>(grant.token.value),
                WordOf(grant.flow, arguments.json).c_str(),
                static_cast<unsigned long long>(grant.fence.value),
                static_cast<long long>(grant.hold.count()));
  }
  return std::fflush(stdout) == 0;
}

}  // namespace

int Exec(const Arguments& arguments) {
  // Signals first: the client's threads inherit the mask.
  Running running(arguments.on_lost, arguments.signals_to_all);
  LostTokens lost;
  Answered answered;
  const auto client = StartClient(arguments);
  if (!client.ok()) {
    const bool is_wrong = client.status().code() == StatusCode::kInvalidArgument;
    return is_wrong ? kExitUsage : kExitCannotRun;
  }
  AcquireOptions options = arguments.acquire;
  options.on_lost = [&lost](const Grant& grant, const std::string& reason) {
    lost.Tell(grant, reason);
  };
  AcquireFlows(client->get(), arguments, options,
               [&answered](AllAcquired answer) { answered.Put(std::move(answer)); });
  // Wait for the answer or for a signal that asks to end.
  if (const int signal = running.WaitForEvent(answered.fd()); signal != 0) {
    answered.Refuse();
    (void)(*client)->Close(kCloseTimeout);  // Nothing ran, and the server forgets a silent session.
    if (signal == SIGINT) EndBySigint();
    return 128 + signal;
  }
  AllAcquired acquired = answered.Take();
  const bool unlimited = acquired.outcome == Outcome::kNoRule && !arguments.needs_rule;
  if (!acquired.ok() && !unlimited) {
    ComplainOfExec(arguments, acquired.message);
    return ExitCodeOf(arguments, acquired);
  }
  if (IsLocal(acquired)) {
    const std::string why = (*client)->stats().why_offline;
    ComplainOfExec(arguments, "no server grants a token now" +
                                  (why.empty() ? "" : " (" + why + ")") +
                                  "; the command runs without one, as --fallback says");
  }
  // The guard starts with an end of validity, then runs the command.
  (void)TellValidTo(acquired.permits, &running);
  const int error = running.Start(arguments.argv, VariablesOf(arguments.client, acquired.permits));
  const Ended ended = error != 0 ? Ended{.exit_code = StartFailed(arguments, error)}
                                 : WaitFor(arguments, acquired.permits, &running, &lost);
  // Release, and wait a bounded time for the server's answer.
  for (Permit& permit : acquired.permits) permit.ReleaseAsync(OutcomeOf(ended));
  const Status closed = (*client)->Close(kCloseTimeout);
  if (!closed.ok()) ComplainOfExec(arguments, closed.message());
  if (ended.was_lost) return kExitLost;
  if (ended.signal == SIGINT) EndBySigint();
  return ended.exit_code;
}

int AcquireForScript(const Arguments& arguments) {
  auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  AcquireOptions options = arguments.acquire;
  // This process ends at once, so it cannot keep the token.
  options.keep = KeepMode::kOff;
  std::promise<AllAcquired> answer;
  AcquireFlows(client->get(), arguments, options,
               [&answer](AllAcquired all) { answer.set_value(std::move(all)); });
  const AllAcquired acquired = answer.get_future().get();
  if (!acquired.ok()) return Complained(acquired);
  // If the tokens cannot be printed, the permits give them back.
  if (!TellTokens(arguments, acquired.permits)) return kExitIoError;
  client->reset();  // From here on the permits release nothing: the session has the tokens.
  return kExitOk;
}

int ReleaseForScript(const Arguments& arguments) {
  const auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  Permit permit = (*client)->Adopt(TokenId(arguments.token), FlowId());
  const Released released = permit.Release();
  if (!released.ok()) return Complained(released);
  if (released.lost) {
    Complain(arguments.client.client_id + " holds no such token: it was released or taken back");
    return kExitFailure;
  }
  std::puts("released");
  return kExitOk;
}

int KeepForScript(const Arguments& arguments) {
  auto client = StartClient(arguments);
  if (!client.ok()) return kExitUsage;
  Permit permit = (*client)->Adopt(TokenId(arguments.token), FlowId());
  const Kept kept = permit.Keep();
  client->reset();  // As in AcquireForScript.
  if (!kept.ok()) return Complained(kept);
  std::printf("to hold %lld ms\n", static_cast<long long>(kept.hold.count()));
  return kExitOk;
}

}  // namespace nowcalls::command
