#include "sim/rpc_caller.h"

namespace nowcalls::sim {

void RpcCaller::Received(std::string_view bytes) {
  const LinkId from = link();
  exchange_->Receive(bytes);
  for (;;) {
    const auto response = exchange_->TakeResponse();
    if (!response.ok()) return Misunderstood(response.status().message());
    TellLost();  // What came before it.
    if (!response->has_value()) return;
    const auto awaited = answers_.extract((*response)->msgid);
    network()->Answered(from, awaited.mapped().sent_ms);
    const auto& error = (*response)->error;
    const bool half = error && error->code == wire::ErrorCode::kMalformed &&
                      MayBeOfHalf(awaited.mapped().sent_ms);
    awaited.mapped().answer(half ? nullptr : &**response);
    if (!IsOn(from)) return;  // The answer has made it hang up.
  }
}

void RpcCaller::TellLost() {
  for (const wire::LostNotice& notice : exchange_->TakeLost()) Lost(notice);
}

void RpcCaller::Lost(const wire::LostNotice& /*notice*/) { Misunderstood("a notification"); }

void RpcCaller::Disconnected() {
  for (const auto& [msgid, awaited] : std::exchange(answers_, {})) awaited.answer(nullptr);
  Left();
}

}  // namespace nowcalls::sim
