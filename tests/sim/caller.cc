#include "sim/caller.h"

#include "base/limits.h"

namespace nowcalls::sim {

void Caller::Connect(bool steady) {
  NOWCALLS_CHECK(!connected());
  peer_ = host_ + ":" + std::to_string(++port_);
  exchange_ = std::make_unique<client::Exchange>();
  finished_ = false;
  link_ = network_->Connect(this, peer_, steady);
}

void Caller::Hangup(bool politely) {
  if (!connected()) return;
  if (politely) {
    finished_ = true;
    return network_->Finish(*link_);
  }
  network_->Reset(*link_);
  Drop();
}

void Caller::OnBytes(LinkId link, std::string_view bytes) {
  if (link_ != link) return;
  exchange_->Receive(bytes);
  for (;;) {
    const auto response = exchange_->TakeResponse();
    if (!response.ok()) return Misunderstood(response.status().message());
    if (!response->has_value()) return;
    const auto awaited = answers_.extract((*response)->msgid);
    awaited.mapped().answer(IsOfHalf(**response, awaited.mapped()) ? nullptr : &**response);
    if (link_ != link) return;  // The answer has made it hang up.
  }
}

bool Caller::IsOfHalf(const wire::Response& response, const Awaited& awaited) const {
  const int64_t waited_ms = network_->now_ms() - awaited.sent_ms;
  return response.error && response.error->code == wire::ErrorCode::kMalformed &&
         waited_ms >= Limits().message_incomplete_ms;
}

void Caller::OnDown(LinkId link) {
  if (link_ == link) Drop();
}

void Caller::Drop() {
  link_.reset();
  for (const auto& [msgid, awaited] : std::exchange(answers_, {})) awaited.answer(nullptr);
  Disconnected();
}

}  // namespace nowcalls::sim
