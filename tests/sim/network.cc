#include "sim/network.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nowcalls::sim {
namespace {

constexpr int64_t kKeepAliveUs = 60 * kSecond;  // Until a vanished peer is found out.
constexpr int64_t kFlushUs = 2 * kSecond;       // server::Server::kCloseMsMax

}  // namespace

LinkId Network::Connect(LinkUser* user, std::string peer, bool steady) {
  const auto id = static_cast<LinkId>(links_.size());
  links_.push_back(std::make_unique<Link>());
  Link& link = *links_.back();
  link.id = id;
  link.peer = std::move(peer);
  link.user = user;
  link.steady = steady;
  if (Happens(link, plan_->slow_reader_chance)) {
    faults_->Count(Fault::kSlowReader);
    link.window = static_cast<size_t>(prng_.Between(10, 500));
  }
  if (listening_.empty()) {
    link.gone = true;
    NoteGone(&link);
    TellClient(&link, DelayUs(link));
    return id;
  }
  const size_t choice = listening_.size() == 1 ? 0 : prng_.Below(listening_.size());
  link.server = *std::next(listening_.begin(), static_cast<ptrdiff_t>(choice));
  if (superseded_.contains(link.server)) NoteGone(&link);
  link.up_at_us = timeline_->now_us() + DelayUs(link);
  timeline_->At(link.up_at_us, [this, id] {
    Link& at = *links_[id];
    if (at.gone || at.cut_up) return;
    at.arrived = true;
    MarkNews(id);
  });
  return id;
}

bool Network::Happens(const Link& link, uint32_t chance) {
  return !healed_ && !link.steady && prng_.ChancePerMillion(chance);
}

int64_t Network::DelayUs(const Link& link) {
  int64_t delay_us = prng_.Between(1, plan_->network_delay_us_max);
  if (Happens(link, plan_->network_stall_chance)) {
    faults_->Count(Fault::kNetworkStall);
    delay_us += prng_.Between(0, plan_->network_stall_ms_max) * kMs;
  }
  return delay_us;
}

void Network::Send(LinkId id, std::string_view bytes) {
  Link& link = *links_[id];
  if (link.user == nullptr || link.cut_up) return;
  SendPieces(&link, bytes, /*up=*/true);
}

void Network::SendPieces(Link* link, std::string_view bytes, bool up) {
  const LinkId id = link->id;
  int64_t& last_us = up ? link->up_at_us : link->down_at_us;
  const bool split = Happens(*link, plan_->split_chance);
  if (split) faults_->Count(Fault::kSplit);
  while (!bytes.empty()) {
    const auto size =
        split ? static_cast<size_t>(prng_.Between(1, static_cast<int64_t>(bytes.size())))
              : bytes.size();
    last_us = std::max(last_us, timeline_->now_us() + DelayUs(*link));
    timeline_->At(last_us, [this, id, up, piece = std::string(bytes.substr(0, size))] {
      up ? ArriveUp(id, piece) : ArriveDown(id, piece);
    });
    bytes.remove_prefix(size);
  }
}

void Network::ArriveUp(LinkId id, const std::string& bytes) {
  Link& link = *links_[id];
  if (link.gone || link.cut_up || link.closed) return;
  link.inbox += bytes;
  MarkNews(id);
}

void Network::ArriveDown(LinkId id, const std::string& bytes) {
  Link& link = *links_[id];
  link.in_flight -= bytes.size();
  if (link.cut_down) return;
  if (link.user == nullptr) return TellServer(&link, DelayUs(link));
  const size_t kept = link.outbox.size();
  PumpDown(&link);
  if (link.outbox.size() < kept && !link.gone && !link.closed) {
    link.drained = true;
    MarkNews(id);
  }
  if (link.closed && kept > 0 && link.outbox.empty()) EndDown(&link);
  link.user->OnBytes(id, bytes);
}

void Network::PumpDown(Link* link) {
  if (link->cut_down) return;
  while (!link->outbox.empty() && link->in_flight < link->window) {
    const size_t size = std::min(link->outbox.size(), link->window - link->in_flight);
    link->in_flight += size;
    const std::string bytes = link->outbox.substr(0, size);
    link->outbox.erase(0, size);
    SendPieces(link, bytes, /*up=*/false);
  }
}

void Network::Finish(LinkId id) {
  Link& link = *links_[id];
  if (link.user == nullptr || link.cut_up) return;
  NoteBroken(&link);
  link.up_at_us = std::max(link.up_at_us, timeline_->now_us() + DelayUs(link));
  timeline_->At(link.up_at_us, [this, id] {
    Link& at = *links_[id];
    if (at.gone || at.cut_up) return;
    at.end_of_input = true;
    MarkNews(id);
  });
}

void Network::Reset(LinkId id) {
  Link& link = *links_[id];
  if (link.user == nullptr) return;
  link.user = nullptr;
  NoteBroken(&link);
  // What it had sent before may still arrive.
  if (prng_.Below(2) == 0) link.cut_up = true;
  TellServer(&link, std::max(link.up_at_us - timeline_->now_us(), DelayUs(link)));
}

void Network::Break(LinkId id) {
  Link& link = *links_[id];
  NoteBroken(&link);
  link.cut_up = prng_.Below(2) == 0;
  link.cut_down = prng_.Below(2) == 0;
  TellServer(&link, std::max(link.up_at_us - timeline_->now_us(), DelayUs(link)));
  TellClient(&link, std::max(link.down_at_us - timeline_->now_us(), DelayUs(link)));
}

void Network::Vanish(LinkId id) {
  Link& link = *links_[id];
  NoteBroken(&link);
  link.cut_up = link.cut_down = true;
  TellServer(&link, kKeepAliveUs);
  TellClient(&link, DelayUs(link));
}

std::vector<LinkId> Network::OpenLinks() const {
  std::vector<LinkId> open;
  for (const auto& link : links_) {
    if (link->user != nullptr && !link->broken && !link->steady) open.push_back(link->id);
  }
  return open;
}

void Network::NoteBroken(Link* link) const {
  if (std::exchange(link->broken, true)) return;
  if (watch_.broken) watch_.broken(link->id);
}

void Network::NoteGone(Link* link) const {
  NoteBroken(link);
  if (watch_.settled) watch_.settled(link->id);
}

void Network::Answered(LinkId id, int64_t sent_ms) const {
  const auto end = lease_ends_ms_.find(links_[id]->server);
  if (end != lease_ends_ms_.end() && sent_ms > end->second) watch_.unfenced(id);
}

void Network::TellClient(Link* link, int64_t delay_us) {
  timeline_->After(delay_us, [this, id = link->id] {
    Link& at = *links_[id];
    at.cut_up = at.cut_down = true;
    if (LinkUser* const user = std::exchange(at.user, nullptr)) user->OnDown(id);
  });
}

void Network::TellServer(Link* link, int64_t delay_us) {
  timeline_->After(delay_us, [this, id = link->id] {
    Link& at = *links_[id];
    if (at.gone) return;
    at.reset = true;
    at.cut_up = true;
    MarkNews(id);
  });
}

void Network::MarkNews(LinkId id) {
  const size_t server = links_[id]->server;
  std::vector<LinkId>& news = news_[server];
  if (std::find(news.begin(), news.end(), id) == news.end()) news.push_back(id);
  if (watch_.arrived) watch_.arrived(server);
}

size_t Network::Write(LinkId id, std::string_view bytes) {
  Link& link = *links_[id];
  if (link.reset || link.cut_down) return 0;  // The kernel takes it; nobody reads it.
  link.outbox += bytes;
  PumpDown(&link);
  return link.outbox.size();
}

void Network::CloseByServer(LinkId id, bool flush) {
  Link& link = *links_[id];
  link.closed = true;
  link.inbox.clear();
  NoteBroken(&link);
  if (!flush) link.outbox.clear();
  if (link.outbox.empty()) return EndDown(&link);
  timeline_->After(kFlushUs, [this, id] {
    Link& at = *links_[id];
    if (at.gone) return;
    at.outbox.clear();
    EndDown(&at);
  });
}

// The end follows the bytes that are under way.
void Network::EndDown(Link* link) {
  TellClient(link, std::max(link->down_at_us - timeline_->now_us(), DelayUs(*link)));
  link->reset = true;
  MarkNews(link->id);
}

void Network::Settle(LinkId id) {
  Link& link = *links_[id];
  link.gone = true;
  link.inbox.clear();
  link.outbox.clear();
  if (watch_.settled) watch_.settled(id);
}

void Network::Supersede(size_t server) {
  if (!listening_.contains(server)) return;
  superseded_.insert(server);
  for (const auto& link : links_) {
    if (!link->gone && link->server == server) NoteGone(link.get());
  }
}

void Network::ServerDied(size_t server) {
  listening_.erase(server);
  superseded_.erase(server);
  news_.erase(server);
  for (const auto& link : links_) {
    if (link->gone || link->server != server) continue;
    NoteBroken(link.get());
    link->cut_up = true;
    Settle(link->id);
    TellClient(link.get(), std::max(link->down_at_us - timeline_->now_us(), DelayUs(*link)));
  }
}

}  // namespace nowcalls::sim
