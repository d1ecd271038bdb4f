#include "support/fake_etcd.h"

#include <algorithm>

namespace nowcalls::testing {
namespace {

using cluster::Compare;
using cluster::Operation;
using cluster::Row;

constexpr int64_t kTtlMs = 2'000;

bool IsIn(const std::string& key, const Operation& operation) {
  return operation.end.empty() ? key == operation.key : key >= operation.key && key < operation.end;
}

// etcd refuses a branch that puts a key twice, or deletes what it puts.
bool PutsOnce(const std::vector<Operation>& branch) {
  std::set<std::string> keys;
  for (const Operation& operation : branch) {
    if (operation.kind == Operation::Kind::kPut && !keys.insert(operation.key).second) return false;
  }
  return std::none_of(branch.begin(), branch.end(), [&](const Operation& operation) {
    return operation.kind == Operation::Kind::kDelete &&
           std::any_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return IsIn(key, operation); });
  });
}

}  // namespace

Result<cluster::TxnReply> FakeEtcd::Commit(const cluster::Txn& txn) {
  if (!PutsOnce(txn.then) || !PutsOnce(txn.otherwise)) {
    return Status::InvalidArgument("etcdserver: duplicate key given in txn request");
  }
  cluster::TxnReply reply;
  reply.succeeded = std::all_of(txn.compares.begin(), txn.compares.end(),
                                [this](const Compare& compare) { return Holds(compare); });
  bool changed = false;
  for (const Operation& operation : reply.succeeded ? txn.then : txn.otherwise) {
    if (operation.kind == Operation::Kind::kGet) {
      reply.found.push_back(Find(operation));
    } else {
      changed = Apply(operation, revision_ + 1) || changed;
    }
  }
  if (changed) ++revision_;
  reply.revision = revision_;
  return reply;
}

int64_t FakeEtcd::GrantLease() {
  leases_.insert(++last_lease_);
  return last_lease_;
}

Result<cluster::LeaseTime> FakeEtcd::Renew(int64_t lease) {
  if (!leases_.contains(lease)) return Status::NotFound("the lease in etcd is over");
  return cluster::LeaseTime{.id = lease, .ttl_ms = kTtlMs};
}

void FakeEtcd::EndLease(int64_t lease) {
  leases_.erase(lease);
  if (std::erase_if(rows_, [&](const auto& row) { return row.second.lease == lease; }) > 0) {
    ++revision_;
  }
}

bool FakeEtcd::Holds(const Compare& compare) const {
  const auto found = rows_.find(compare.key);
  const bool exists = found != rows_.end();
  switch (compare.what) {
    case Compare::What::kVersion: return (exists ? found->second.version : 0) == compare.number;
    case Compare::What::kCreateRevision:
      return (exists ? found->second.create_revision : 0) == compare.number;
    case Compare::What::kValue: return exists && found->second.value == compare.value;
  }
  return false;
}

std::vector<Row> FakeEtcd::Find(const Operation& get) const {
  const auto begin = rows_.lower_bound(get.key);
  auto end = get.end.empty() ? rows_.upper_bound(get.key) : rows_.lower_bound(get.end);
  if (!get.end.empty() && get.end < get.key) end = begin;
  const size_t rows_max = get.rows_max > 0 ? static_cast<size_t>(get.rows_max) : SIZE_MAX;
  std::vector<Row> found;
  if (get.descending) {
    for (auto at = end; at != begin && found.size() < rows_max;) found.push_back((--at)->second);
  } else {
    for (auto at = begin; at != end && found.size() < rows_max; ++at) found.push_back(at->second);
  }
  if (get.keys_only) {
    for (Row& row : found) row.value.clear();
  }
  return found;
}

bool FakeEtcd::Apply(const Operation& operation, int64_t revision) {
  if (operation.kind == Operation::Kind::kDelete) {
    return std::erase_if(rows_, [&](const auto& row) { return IsIn(row.first, operation); }) > 0;
  }
  Row& row = rows_[operation.key];
  if (row.version == 0) row.create_revision = revision;
  row.key = operation.key;
  row.value = operation.value;
  row.lease = operation.lease;
  ++row.version;
  return true;
}

}  // namespace nowcalls::testing
