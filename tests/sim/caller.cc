#include "sim/caller.h"

#include "base/limits.h"

namespace nowcalls::sim {

void Caller::Connect(bool steady) {
  NOWCALLS_CHECK(!connected());
  peer_ = host_ + ":" + std::to_string(++port_);
  finished_ = false;
  Connected();
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

void Caller::Send(std::string_view request) {
  ++requests_;
  network_->Send(*link_, request);
}

bool Caller::MayBeOfHalf(int64_t sent_ms) const {
  return network_->now_ms() - sent_ms >= Limits().message_incomplete_ms;
}

void Caller::OnBytes(LinkId link, std::string_view bytes) {
  if (IsOn(link)) Received(bytes);
}

void Caller::OnDown(LinkId link) {
  if (IsOn(link)) Drop();
}

void Caller::Drop() {
  link_.reset();
  Disconnected();
}

}  // namespace nowcalls::sim
