#include "client/greeting.h"

#include "base/check.h"
#include "base/limits.h"
#include "client/answers.h"

namespace nowcalls::client {

// hello follows at once: both answers come after one round trip.
void Greeting::Begin(Exchange* exchange, int64_t now_ms) {
  asks_for_more_ = true;
  identity_.clear();
  identify_msgid_.reset();
  if (!options_->secret.empty()) {
    const Result<uint32_t> msgid = exchange->Request([this](uint32_t id, wire::OutputBuffer* out) {
      wire::EncodeIdentifyRequest(id, options_->secret, out);
    });
    NOWCALLS_CHECK(msgid.ok());  // Client::Start bounds the secret.
    identify_msgid_ = *msgid;
  }
  Hello(exchange, now_ms);
}

// An older server refuses `lost`, `instance` and `terms`; asks_for_more_ drops them together.
void Greeting::Hello(Exchange* exchange, int64_t now_ms) {
  const Result<uint32_t> msgid = exchange->Request([this](uint32_t id, wire::OutputBuffer* out) {
    wire::EncodeHelloRequest(id,
                             {.name_space = options_->name_space,
                              .client_id = options_->client_id,
                              .lost = asks_for_more_,
                              .exclusive = options_->exclusive,
                              .instance = asks_for_more_ ? instance_ : 0,
                              .terms = asks_for_more_},
                             out);
  });
  NOWCALLS_CHECK(msgid.ok());  // Names are short.
  hello_msgid_ = *msgid;
  hello_ms_ = now_ms;
}

Result<Greeting::Step> Greeting::Take(const wire::Response& response, Exchange* exchange,
                                      int64_t now_ms) {
  if (response.msgid == identify_msgid_) return TakeIdentity(response);
  hello_msgid_.reset();
  if (response.error) {
    if (response.error->code != wire::ErrorCode::kBadParams || !asks_for_more_) {
      return Refuse("hello", *response.error);
    }
    asks_for_more_ = false;
    Hello(exchange, now_ms);
    return Step::kGoesOn;
  }
  const Result<wire::HelloReply> reply = wire::DecodeHelloReply(response.result);
  if (!reply.ok()) return reply.status();
  reply_ = *reply;
  return Step::kAccepted;
}

Result<Greeting::Step> Greeting::TakeIdentity(const wire::Response& response) {
  identify_msgid_.reset();
  if (response.error) {
    // An older server lets everybody in.
    if (response.error->code == wire::ErrorCode::kUnknownMethod) return Step::kGoesOn;
    return Refuse("identify", *response.error);
  }
  const Result<wire::IdentifyReply> reply = wire::DecodeIdentifyReply(response.result);
  if (!reply.ok()) return reply.status();
  identity_ = reply->name;
  return Step::kGoesOn;
}

Greeting::Step Greeting::Refuse(const char* method, const wire::RequestError& error) {
  refusal_ = AnswerOf(error);
  refusal_.message = std::string(method) + " refused: " + refusal_.message;
  return Step::kRefused;
}

// The server answers a wrong secret late.
int64_t Greeting::patience_ms() const {
  return options_->timeout.count() + (options_->secret.empty() ? 0 : kWrongSecretMs);
}

}  // namespace nowcalls::client
