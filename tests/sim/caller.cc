#include "sim/caller.h"

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
    auto answer = answers_.extract((*response)->msgid);
    answer.mapped()(&**response);
    if (link_ != link) return;  // The answer has made it hang up.
  }
}

void Caller::OnDown(LinkId link) {
  if (link_ == link) Drop();
}

void Caller::Drop() {
  link_.reset();
  for (const auto& [msgid, answer] : std::exchange(answers_, {})) answer(nullptr);
  Disconnected();
}

}  // namespace nowcalls::sim
