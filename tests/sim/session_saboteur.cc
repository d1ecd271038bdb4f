#include "sim/session_saboteur.h"

#include "wire/client_messages.h"
#include "wire/messages.h"

namespace nowcalls::sim {

bool SessionSaboteur::Swallows(std::string_view message, std::string* replies) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) return false;
  wire::OutputBuffer out;
  if (kind_ == Sabotage::kSessionAsksOnce && envelope.method == wire::Method::kAcquire) {
    wire::AcquireParams params;
    const bool decoded = wire::DecodeAcquire(envelope.params, &params, &error);
    return decoded && !asked_.insert(params.request_id).second;
  }
  if (kind_ == Sabotage::kSessionForgetsRelease && envelope.method == wire::Method::kRelease) {
    wire::TokenParams params;
    const bool decoded = wire::DecodeToken(envelope.method, envelope.params, &params, &error);
    return decoded && !asked_.insert(params.token_id).second;
  }
  if (kind_ == Sabotage::kSessionForgetsCancel && envelope.method == wire::Method::kCancel) {
    wire::EncodeStatus(envelope.msgid, TokenStatus::kReleaseOk, &out);
  } else if (kind_ == Sabotage::kSessionForgetsKeep && envelope.method == wire::Method::kKeep) {
    constexpr uint64_t kHoldMs = 60'000;
    wire::EncodeKeep(envelope.msgid, {.status = TokenStatus::kOk, .hold_ms = kHoldMs}, &out);
  }
  if (out.empty()) return false;
  *replies += out.view();
  return true;
}

bool SessionSaboteur::Hears(std::string_view message) const {
  return hears_all() || !wire::IsNotification(message);
}

}  // namespace nowcalls::sim
