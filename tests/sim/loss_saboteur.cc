#include "sim/loss_saboteur.h"

#include "wire/admin_messages.h"
#include "wire/client_messages.h"

namespace nowcalls::sim {

std::string LossSaboteur::Notice(uint64_t token, EndReason reason) const {
  wire::OutputBuffer out;
  wire::EncodeLost(token, grants_.at(token).flow, reason, &out);
  return std::string(out.view());
}

std::string LossSaboteur::OnRequest(LinkId link, const wire::Envelope& envelope) {
  const Call call{link, envelope.msgid};
  wire::RequestError error;
  if (envelope.method == wire::Method::kHello) {
    wire::HelloParams params;
    if (wire::DecodeHello(envelope.params, &params, &error) && params.lost) listeners_.insert(link);
  } else if (envelope.method == wire::Method::kAcquire) {
    wire::AcquireParams params;
    if (wire::DecodeAcquire(envelope.params, &params, &error)) acquires_[call] = params.flow_id;
  } else if (envelope.method == wire::Method::kRelease) {
    wire::TokenParams params;
    if (wire::DecodeToken(envelope.method, envelope.params, &params, &error)) {
      releases_[call] = params.token_id;
    }
  } else if (envelope.method == wire::Method::kReclaim && kind_ == Kind::kEarly) {
    wire::ReclaimParams params;
    const bool decoded = wire::DecodeReclaim(envelope.params, &params, &error);
    const auto grant = decoded ? grants_.find(params.token_id) : grants_.end();
    if (grant != grants_.end() && listeners_.contains(grant->second.link)) {
      early_[grant->second.link] += Notice(params.token_id, EndReason::kAdmin);
      told_early_.insert(params.token_id);
    }
  }
  return std::exchange(early_[link], {});
}

std::string LossSaboteur::OnReply(LinkId link, std::string_view message) {
  std::string as_it_is(message);
  if (wire::IsNotification(message)) {
    const auto notice = wire::DecodeNotification(message);
    const bool drops = kind_ == Kind::kWithheld || told_early_.contains((*notice)->token_id);
    return drops ? std::string() : as_it_is;
  }
  const auto response = wire::DecodeResponse(message);
  if (!response.ok() || response->error) return as_it_is;
  const Call call{link, response->msgid};
  if (const auto acquire = acquires_.extract(call); !acquire.empty()) {
    const auto reply = wire::DecodeAcquireReply(response->result);
    if (reply.ok() && reply->status == TokenStatus::kOk) {
      grants_[reply->token_id] = {link, acquire.mapped()};
    }
    return as_it_is;
  }
  const auto release = releases_.extract(call);
  if (release.empty()) return as_it_is;
  const auto status = wire::DecodeStatusReply(response->result);
  const uint64_t token = release.mapped();
  const bool released = status.ok() && *status == TokenStatus::kReleaseOk;
  if (!released || !grants_.contains(token)) return as_it_is;
  if (kind_ == Kind::kOfReleased && listeners_.contains(link)) {
    as_it_is += Notice(token, EndReason::kResourceTimeout);
  }
  grants_.erase(token);
  return as_it_is;
}

}  // namespace nowcalls::sim
