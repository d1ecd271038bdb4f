#include "server/rules/etcd_document.h"

#include <utility>
#include <vector>

namespace nowcalls::server {
namespace {

// The endpoint that failed is another each time; these words are not.
std::string ProblemOf(const Status& why) {
  switch (why.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kOutcomeUnknown: return "cannot be read: etcd does not answer";
    case StatusCode::kPermissionDenied:
      return "cannot be read: etcd denies it (cluster-user, cluster-password-file)";
    default: return "cannot be read: " + why.message();
  }
}

}  // namespace

EtcdDocument::EtcdDocument(std::unique_ptr<cluster::Etcd> etcd, size_t endpoints, std::string key)
    : etcd_(std::move(etcd)), endpoints_(endpoints), key_(std::move(key)) {}

void EtcdDocument::Interrupt() {
  interrupted_ = true;
  etcd_->EndWait();
}

Fetched EtcdDocument::Fetch(bool again) {
  // 1. Wait for a change, unless nothing is known or somebody asks.
  const bool known = version_ != 0 && !again;
  if (known) etcd_->AwaitChange(key_, revision_, kWaitMs);
  if (interrupted_.exchange(false)) return {};
  // 2. Look; the value comes along only if it is another.
  cluster::Txn look;
  if (known) {
    look.compares = {
        {.key = key_, .what = cluster::Compare::What::kVersion, .number = version_},
        {.key = key_, .what = cluster::Compare::What::kCreateRevision, .number = create_revision_}};
    look.otherwise = {cluster::Get(key_)};
  } else {
    look.then = {cluster::Get(key_)};
  }
  const Result<cluster::TxnReply> reply = Ask(look);
  if (!reply.ok()) return Fail(reply.status());
  revision_ = reply->revision;
  if (known && reply->succeeded) return Fetched::Unchanged(kSettleMs);
  // 3. What was found.
  if (reply->found.empty() || reply->found.front().empty()) {
    version_ = 0;
    return Fetched::Failed("is not there: etcd has no such key", kFailurePauseMs);
  }
  const cluster::Row& row = reply->found.front().front();
  version_ = row.version;
  create_revision_ = row.create_revision;
  return Fetched::Read(row.value, kSettleMs);
}

Result<cluster::TxnReply> EtcdDocument::Ask(const cluster::Txn& txn) {
  Result<cluster::TxnReply> reply = etcd_->Commit(txn);
  // A client gives a connection less time than it may take, and goes on with it at the next call.
  for (size_t asked = 1; asked < endpoints_ + kMoreAttempts && !reply.ok(); ++asked) {
    if (interrupted_) break;
    reply = etcd_->Commit(txn);
  }
  return reply;
}

Fetched EtcdDocument::Fail(const Status& why) {
  version_ = 0;
  if (interrupted_.exchange(false)) return {};
  return Fetched::Failed(ProblemOf(why), kFailurePauseMs);
}

}  // namespace nowcalls::server
