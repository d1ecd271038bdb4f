#include "member/presence.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace nowcalls::member {
namespace {

constexpr int64_t kEveryMs = 1'000;
// etcd's history before this is forgotten: nothing asks for it.
constexpr int64_t kHistoryMs = 5'000;

}  // namespace

Presence::Presence(cluster::Etcd* etcd, const cluster::Keys* keys, Calls calls)
    : etcd_(etcd), keys_(keys), calls_(std::move(calls)) {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "nc-member");
}

Presence::~Presence() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

void Presence::Run() {
  for (;;) {
    if (const auto record = calls_.record()) Tell(*record);
    std::unique_lock lock(mutex_);
    const auto pause = std::chrono::milliseconds(kEveryMs);
    if (ending_.wait_for(lock, pause, [this] { return end_; })) break;
  }
  // Others need not wait for the lease to end. If etcd does not answer, it will.
  if (lease_) (void)etcd_->Revoke(lease_->id).ok();
}

// Whatever fails is done again in a second.
void Presence::Tell(const cluster::MemberRecord& record) {
  const Result<cluster::TxnReply> reply = Exchange(record);
  const int64_t now_ms = BoottimeMs();
  if (reply.ok()) Hear(*reply, now_ms);
  // Also without etcd: the others grow silent.
  std::vector<HeardMember> members;
  for (const auto& [key, last] : heard_) {
    if (last.record) members.push_back({*last.record, now_ms - last.at_ms});
  }
  calls_.members(members);
  if (reply.ok() && record.leads) Compact(reply->revision);
}

Result<cluster::TxnReply> Presence::Exchange(const cluster::MemberRecord& record) {
  Result<cluster::LeaseTime> lease = lease_ ? etcd_->Renew(lease_->id) : etcd_->Grant(kTtlMs);
  if (lease.status().code() == StatusCode::kNotFound) lease_.reset();
  if (!lease.ok()) return lease.status();
  lease_ = *lease;
  return etcd_->Commit(
      {.then = {cluster::Put(keys_->Member(record.member), record.ToJson(), lease_->id),
                {.key = keys_->Member(""), .end = keys_->members_end()}}});
}

void Presence::Hear(const cluster::TxnReply& reply, int64_t now_ms) {
  std::map<std::string, Heard> heard;
  for (const cluster::Row& row :
       reply.found.empty() ? std::vector<cluster::Row>() : reply.found[0]) {
    // Each report is another version of the key.
    const auto before = heard_.find(row.key);
    const bool is_old = before != heard_.end() && before->second.version == row.version;
    Heard now{.version = row.version, .at_ms = is_old ? before->second.at_ms : now_ms};
    // A record of a version to come is passed over, as one that is absent.
    Result<cluster::MemberRecord> member = cluster::MemberRecord::FromJson(row.value);
    if (member.ok()) now.record = *std::move(member);
    heard.emplace(row.key, std::move(now));
  }
  heard_ = std::move(heard);
}

void Presence::Compact(int64_t revision) {
  const int64_t now_ms = BoottimeMs();
  if (now_ms - looked_ms_ < kHistoryMs) return;
  if (revision_ > 0) (void)etcd_->Compact(revision_).ok();
  revision_ = revision;
  looked_ms_ = now_ms;
}

}  // namespace nowcalls::member
