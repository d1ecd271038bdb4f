#include "server/cluster/roster.h"

#include <memory>
#include <utility>

#include "base/clock.h"

namespace nowcalls::server {
namespace {

wire::ClusterMember RowOf(const cluster::MemberRecord& record, int64_t silent_ms) {
  return {.member = record.member,
          .address = record.address,
          .version = record.version,
          .leads = record.leads,
          .applied = record.applied,
          .synced = record.synced,
          .lag = record.lag,
          .silent_ms = static_cast<uint64_t>(silent_ms)};
}

}  // namespace

void Roster::Hear(std::vector<member::HeardMember> members) {
  board_->cluster_members.store(members.size(), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    members_ = std::move(members);
    heard_ms_ = BoottimeMs();
  }
  Publish();
}

void Roster::SetWriter(const std::string& cluster, const std::string& writer) {
  {
    const std::lock_guard lock(mutex_);
    if (cluster_ == cluster && writer_ == writer) return;
    cluster_ = cluster;
    writer_ = writer;
  }
  Publish();
}

// What others say of a role may be a second old: this member knows its own, and who writes.
wire::ClusterReply Roster::Describe() const {
  const std::optional<cluster::MemberRecord> own = own_();
  wire::ClusterReply reply;
  reply.prefix = prefix_;
  reply.term = board_->cluster_term.load(std::memory_order_relaxed);
  reply.log_bytes = board_->cluster_log_bytes.load(std::memory_order_relaxed);
  reply.log_bytes_max = board_->cluster_log_bytes_max.load(std::memory_order_relaxed);
  if (own) reply.last_batch = own->applied;
  const std::lock_guard lock(mutex_);
  reply.cluster = cluster_;
  reply.writer = writer_;
  const int64_t old_ms = BoottimeMs() - heard_ms_;
  for (const auto& [record, silent_ms] : members_) {
    const bool is_own = own && record.member == own->member;
    reply.members.push_back(is_own ? RowOf(*own, 0) : RowOf(record, silent_ms + old_ms));
    reply.members.back().leads = !writer_.empty() && record.address == writer_;
  }
  return reply;
}

Status Roster::MayHandOver() const {
  std::string why;
  for (const wire::ClusterMember& member : Describe().members) {
    if (member.leads) continue;
    if (!why.empty()) why += ", ";
    why += member.address;
    if (member.silent_ms > kHandoverSilentMsMax) {
      why += " has been silent for " + std::to_string(member.silent_ms) + " ms (at most " +
             std::to_string(kHandoverSilentMsMax) + ")";
    } else if (member.lag > kHandoverLagMax) {
      why += " lacks " + std::to_string(member.lag) + " batches (at most " +
             std::to_string(kHandoverLagMax) + ")";
    } else {
      return {};
    }
  }
  return Status::ResourceExhausted(
      why.empty() ? "no other member of the cluster lives: start one before"
                  : "no other member can take over now: " + why + "; ask again later");
}

void Roster::Publish() {
  board_->cluster.Set(std::make_shared<const wire::ClusterReply>(Describe()));
}

}  // namespace nowcalls::server
