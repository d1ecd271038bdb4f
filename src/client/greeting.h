// Greeting: identify and hello at the beginning of a connection.
//
// Thread: one at a time. Times are BoottimeMs values of the owner.
#ifndef NOWCALLS_CLIENT_GREETING_H_
#define NOWCALLS_CLIENT_GREETING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/exchange.h"
#include "nowcalls/answer.h"
#include "nowcalls/client.h"
#include "wire/client_messages.h"
#include "wire/messages.h"

namespace nowcalls::client {

class Greeting {
 public:
  enum class Step : uint8_t { kGoesOn, kAccepted, kRefused };

  // `options` outlive it. `instance`: of the process under its client id; 0: none.
  Greeting(const ClientOptions* options, uint64_t instance)
      : options_(options), instance_(instance) {}

  // Shows the secret, if any, and says hello.
  void Begin(Exchange* exchange, int64_t now_ms);
  void End() {
    identify_msgid_.reset();
    hello_msgid_.reset();
  }
  // The server may yet say that the secret is wrong.
  bool shows_secret() const { return identify_msgid_.has_value(); }
  bool Awaits(uint32_t msgid) const { return msgid == identify_msgid_ || msgid == hello_msgid_; }
  // Takes an awaited answer. kCorruption: it cannot be read.
  Result<Step> Take(const wire::Response& response, Exchange* exchange, int64_t now_ms);

  // For the server's answers.
  int64_t patience_ms() const;
  // The last hello was sent then.
  int64_t hello_ms() const { return hello_ms_; }
  // The server knows `instance`, `terms` and outcomes, as far as is known.
  bool asks_for_more() const { return asks_for_more_; }

  // After kAccepted. As the server names the client; empty: it does not.
  const std::string& identity() const { return identity_; }
  const wire::HelloReply& reply() const { return reply_; }
  // After kRefused.
  const Answer& refusal() const { return refusal_; }

 private:
  void Hello(Exchange* exchange, int64_t now_ms);
  Result<Step> TakeIdentity(const wire::Response& response);
  Step Refuse(const char* method, const wire::RequestError& error);

  const ClientOptions* const options_;
  const uint64_t instance_;
  std::optional<uint32_t> identify_msgid_{};  // Until they are answered.
  std::optional<uint32_t> hello_msgid_{};
  int64_t hello_ms_ = 0;
  bool asks_for_more_ = true;
  std::string identity_{};
  wire::HelloReply reply_{};
  Answer refusal_{};
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_GREETING_H_
