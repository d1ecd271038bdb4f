#include "engine/strangers.h"

#include <memory>

#include "base/check.h"
#include "engine/closing.h"
#include "net/origin.h"

namespace nowcalls::engine {

void Strangers::Add(Connection* connection, Instant now) {
  NOWCALLS_CHECK(connection->stranger == nullptr);
  // Before the new one counts: it is never the one that goes.
  while (count() >= limits_.unidentified_max) MakeRoom();
  connection->stranger = std::make_unique<Stranger>(
      Stranger{.number = next_number_++, .since = now, .origin = net::OriginOf(connection->peer)});
  const Stranger& stranger = *connection->stranger;
  by_age_.emplace(stranger.number, connection->id);
  Order& others = by_origin_[stranger.origin];
  if (!others.empty()) crowds_.erase(CrowdOf(others, stranger.origin));
  others.emplace(stranger.number, connection->id);
  crowds_.insert(CrowdOf(others, stranger.origin));
}

void Strangers::Remove(Connection* connection) {
  if (connection->stranger == nullptr) return;
  const std::unique_ptr<Stranger> stranger = std::move(connection->stranger);
  by_age_.erase({stranger->number, connection->id});
  const auto others = by_origin_.find(stranger->origin);
  crowds_.erase(CrowdOf(others->second, stranger->origin));
  others->second.erase({stranger->number, connection->id});
  if (others->second.empty()) {
    by_origin_.erase(others);
  } else {
    crowds_.insert(CrowdOf(others->second, stranger->origin));
  }
}

// A crowd from one place costs that place its oldest, not others their turn to become known. A
// crowd from as many places costs the oldest of all, and no place again and again.
void Strangers::MakeRoom() {
  const Crowd& largest = *crowds_.rbegin();
  Connection* const oldest = connections_->Get(by_origin_.at(largest.origin).begin()->second);
  const std::string why =
      "gives way to another that is not known either: " + std::to_string(count()) + " are not, " +
      std::to_string(largest.size) + " of them from " + largest.origin;
  Remove(oldest);
  if (!oldest->closed()) closing_->Abort(oldest, why);
}

void Strangers::Count(Connection* connection, size_t in, size_t out) {
  Stranger& stranger = *connection->stranger;
  stranger.in += in;
  stranger.out += out;
  if (stranger.in <= kStrangerBytesMax && stranger.out <= kStrangerBytesMax) return;
  closing_->EndRefused(connection, "is not known after " + std::to_string(stranger.in) +
                                       " bytes from it and " + std::to_string(stranger.out) +
                                       " to it");
}

void Strangers::CheckIncomplete(Connection* connection, size_t in) {
  const size_t all = connection->stranger->in + in;
  if (all <= kStrangerBytesMax) return;
  closing_->EndRefused(connection, "is not known after " + std::to_string(all) + " bytes from it");
}

void Strangers::CloseOverdue(Instant now) {
  while (!by_age_.empty() && NextDeadline() <= now) {
    Connection* const connection = connections_->Get(by_age_.begin()->second);
    Remove(connection);
    // One that ends has had its time, too.
    if (connection->closed()) continue;
    const char* const what =
        connection->peer.shakes_hands ? "has done no TLS handshake after " : "is not known after ";
    closing_->Abort(connection, what + std::to_string(kStrangerMsMax) + " ms");
  }
}

Instant Strangers::NextDeadline() const {
  if (by_age_.empty()) return kNever;
  const Connection* const oldest = connections_->Get(by_age_.begin()->second);
  return oldest->stranger->since + kStrangerMsMax;
}

}  // namespace nowcalls::engine
