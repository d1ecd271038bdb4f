// ClientSession: the client's half of the protocol over many connections.
//
// Thread: one at a time. Times are BoottimeMs values of the owner.
//
// The owner dials when dialing() says so, then calls Connected or DialFailed, Received and Tick,
// and Disconnected. It sends output() and fetches answers with TakeEvents.
#ifndef NOWCALLS_CLIENT_SESSION_H_
#define NOWCALLS_CLIENT_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "client/call.h"
#include "client/call_table.h"
#include "client/contact.h"
#include "client/dialing.h"
#include "client/exchange.h"
#include "client/greeting.h"
#include "client/held_tokens.h"
#include "client/local_limits.h"
#include "client/rule_view.h"
#include "nowcalls/client.h"
#include "wire/messages.h"

namespace nowcalls::client {

class ClientSession {
 public:
  // REQUIRES: checked options. `prng` draws request ids: never repeat a seed. `instance`: of the
  // process under its client id; 0: none.
  ClientSession(ClientOptions options, Prng prng, int64_t now_ms, uint64_t instance = 0);

  // Calls.
  void Acquire(const std::shared_ptr<AcquireCall>& call, int64_t now_ms);
  void Request(const std::shared_ptr<RateCall>& call, int64_t now_ms);
  // Once a token. `outcome`: of the permitted call.
  void Release(const HeldPtr& held, CallOutcome outcome, ReleaseCall::Done done, int64_t now_ms,
               bool blocks = false);
  void Keep(const HeldPtr& held, KeepCall::Done done, int64_t now_ms, bool blocks = false);
  // A token of the session on the server. Unless `keep` is kOff, it is kept from now on.
  HeldPtr Adopt(const Grant& grant, KeepMode keep, int64_t now_ms);
  // Ends all calls but releases and cancels, which go on until settled(). Later acquires and
  // requests: kBadRequest.
  void Close(int64_t now_ms);
  // Ends the connection, all calls and later ones.
  void Abandon(const std::string& reason, int64_t now_ms);
  bool settled() const { return !calls_.has_persistent(); }

  // The connection.
  Dialing& dialing() { return dialing_; }
  void DialFailed(const std::string& reason, int64_t now_ms);
  // Not allowed to talk to that server, or not let in: calls end so until a server accepts hello.
  // DialFailed or Disconnected follows.
  void Deny(Answer denial, int64_t now_ms);
  void Connected(int64_t now_ms);
  // Not ok: close the connection and call Disconnected.
  Status Received(std::string_view bytes, int64_t now_ms);
  void Disconnected(const std::string& reason, int64_t now_ms);
  bool ready() const { return state_ == State::kReady; }
  // The last server that answered does not let this client in.
  bool denied() const { return denied_ && denied_->outcome == Outcome::kPermissionDenied; }
  // REQUIRES: between Connected and Disconnected.
  wire::OutputBuffer* output() { return exchange_->output(); }

  // Does what is due at Wakeup() (INT64_MAX: nothing). Not ok: as Received.
  Status Tick(int64_t now_ms);
  int64_t Wakeup() const;

  struct Events {
    std::vector<CallPtr> finished{};
    std::vector<HeldPtr> lost{};
    std::vector<std::pair<LogLevel, std::string>> lines{};
  };
  Events TakeEvents();
  bool has_events() const { return calls_.has_finished() || !lost_.empty() || !lines_.empty(); }

  ClientStats stats() const;

 private:
  enum class State : uint8_t { kOffline, kGreeting, kReady };

  // Asking.
  void Ask(const CallPtr& call, int64_t now_ms);
  void Send(const CallPtr& call, int64_t now_ms);
  void AskRule(int64_t flow_id, int64_t now_ms);

  // Answers.
  Status GreetingAnswered(const wire::Response& response, int64_t now_ms);
  void EndQueue(const Answer& failure, int64_t now_ms);
  Status Answered(const CallPtr& call, const wire::Response& response, int64_t now_ms);
  Status Answered(const std::shared_ptr<AcquireCall>& call, const wire::Response& response,
                  int64_t now_ms);
  Status Answered(const std::shared_ptr<RateCall>& call, const wire::Response& response,
                  int64_t now_ms);
  Status Answered(const std::shared_ptr<ReleaseCall>& call, const wire::Response& response);
  Status Answered(const std::shared_ptr<KeepCall>& call, const wire::Response& response,
                  int64_t now_ms);
  void RuleAnswered(const RuleCall& call, const wire::Response& response, int64_t now_ms);
  void Hold(const std::shared_ptr<AcquireCall>& call, const wire::AcquireAllReply& reply,
            int64_t now_ms);

  void TryAgain(const std::shared_ptr<AcquireCall>& call, int64_t now_ms);

  void SettleAfter(const CallPtr& call, bool sleep, Milliseconds* wait, int64_t now_ms);

  // No answer.
  void GiveUp(const CallPtr& call, const std::string& reason, int64_t now_ms);
  // `status`: of a refusal.
  void Fail(const CallPtr& call, Answer failure, int64_t now_ms,
            TokenStatus status = TokenStatus::kBlocked);

  // Tokens.
  void LookAfterAll(int64_t now_ms);
  void Lose(const HeldPtr& held, const std::string& reason, int64_t now_ms,
            Held::State now = Held::State::kEnded);

  const ClientOptions options_;
  Prng prng_;
  Dialing dialing_;
  CallTable calls_;
  HeldTokens held_;
  RuleViews rules_;
  LocalLimits local_;
  bool closing_ = false;
  std::optional<std::string> abandoned_;  // Why.
  std::optional<Answer> denied_;          // Of all calls until a server accepts hello.

  // The connection.
  State state_ = State::kOffline;
  std::optional<Exchange> exchange_;
  Greeting greeting_;
  Contact contact_;
  bool useful_ = false;  // The server has answered more than hello.
  bool down_ = false;    // All addresses have failed since the last connection.
  std::string why_offline_ = "not connected yet";

  std::multimap<int64_t, CallPtr> later_;  // By time: acquires to ask again, calls to tell.
  std::unordered_map<int64_t, std::vector<std::shared_ptr<AcquireCall>>> await_rule_;
  std::unordered_map<int64_t, CallPtr> rules_asked_;

  std::vector<HeldPtr> lost_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
  ClientStats stats_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_SESSION_H_
