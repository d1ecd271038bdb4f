#include "cluster/claimed_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace nowcalls::cluster {
namespace {

const Row* OnlyRow(const std::vector<Row>& found) {
  return found.empty() ? nullptr : &found.front();
}

// The rows of operation `index` of the branch that was taken.
const std::vector<Row>& Found(const TxnReply& reply, size_t index) {
  static const std::vector<Row> none;
  return index < reply.found.size() ? reply.found[index] : none;
}

// A batch begins with its version, 1. A slot of a batch in parts has this byte, the header of the
// batch, and the number of parts.
constexpr char kInParts = '\x02';
constexpr size_t kInPartsBytes = 1 + ledger::kSealedBatchHeaderBytes + sizeof(uint32_t);

size_t PartsFor(const ledger::SealedBatch& batch) {
  const size_t bytes = batch.bytes().size();
  constexpr size_t kMost = ClaimedLog::kValueBytesMax;
  return bytes <= kMost ? 0 : (bytes + kMost - 1) / kMost;
}

std::string SlotOf(const ledger::SealedBatch& batch) {
  const size_t parts = PartsFor(batch);
  if (parts == 0) return std::string(batch.bytes());
  std::string slot(1, kInParts);
  slot += batch.bytes().substr(0, ledger::kSealedBatchHeaderBytes);
  AppendBigEndian(&slot, static_cast<uint32_t>(parts));
  return slot;
}

bool IsMine(const Row* row, const HeldClaim& held) {
  return row != nullptr && row->create_revision == held.revision &&
         row->value == held.claim.ToJson();
}

}  // namespace

uint64_t LogView::end() const { return std::max(last, lineage ? lineage->base : 0); }

// The writer's key is compared by revision and by value: after a restore of etcd revisions may
// repeat.
std::vector<Compare> ClaimedLog::IsWriter(const HeldClaim& held) const {
  return {{.key = keys_.writer(), .what = Compare::What::kCreateRevision, .number = held.revision},
          HasValue(keys_.writer(), held.claim.ToJson())};
}

Operation ClaimedLog::SlotsFrom(uint64_t from) const {
  return {.key = keys_.Slot(from), .end = keys_.slots_end()};
}

Txn ClaimedLog::Look() const {
  Operation first = SlotsFrom(0);
  first.rows_max = 1;
  first.keys_only = true;
  Operation last = first;
  last.descending = true;
  return {.then = {Get(keys_.lineage()), Get(keys_.writer()), first, last, Get(keys_.leader())}};
}

Result<LogView> ClaimedLog::ViewOf(const TxnReply& reply) const {
  LogView view;
  if (const Row* row = OnlyRow(Found(reply, 0))) {
    Result<Lineage> lineage = Lineage::FromJson(row->value);
    if (!lineage.ok()) return lineage.status();
    view.lineage = *std::move(lineage);
    view.lineage_value = row->value;
  }
  if (const Row* row = OnlyRow(Found(reply, 1))) {
    Result<cluster::Claim> writer = Claim::FromJson(row->value);
    if (!writer.ok()) return writer.status();
    view.writer = *std::move(writer);
  }
  const auto number_of = [&](size_t index) {
    const Row* row = OnlyRow(Found(reply, index));
    return row == nullptr ? 0 : keys_.SlotNumber(row->key).value_or(0);
  };
  view.first = number_of(2);
  view.last = number_of(3);
  if (const Row* row = OnlyRow(Found(reply, 4))) {
    Result<cluster::Claim> leader = Claim::FromJson(row->value);
    if (!leader.ok()) return leader.status();
    view.leader = *std::move(leader);
  }
  return view;
}

Txn ClaimedLog::Read(uint64_t from, int64_t slots_max) const {
  NOWCALLS_CHECK(from > 0);
  Operation slots = SlotsFrom(from);
  slots.rows_max = slots_max;
  Txn txn = Look();
  txn.then.push_back(std::move(slots));
  return txn;
}

// A hole ends the log: only Settle says that there is nothing behind it.
ClaimedLog::SlotRun ClaimedLog::SlotsOf(const TxnReply& reply, uint64_t from) const {
  SlotRun slots;
  for (const Row& row : Found(reply, 5)) {
    if (keys_.SlotNumber(row.key) != from + slots.batches.size()) break;
    slots.batches.push_back(row.value);
  }
  if (!slots.batches.empty()) return slots;
  if (const Row* first = OnlyRow(Found(reply, 2))) {
    slots.trimmed = from < keys_.SlotNumber(first->key).value_or(0);
  } else if (const Result<LogView> view = ViewOf(reply); view.ok() && view->lineage) {
    slots.trimmed = from <= view->lineage->base;  // A log without slots begins behind its base.
  }
  return slots;
}

Txn ClaimedLog::Claim(const LogView& seen, const cluster::Claim& claim, const Lineage& own,
                      int64_t lease) const {
  NOWCALLS_CHECK(!seen.writer);
  NOWCALLS_CHECK(claim.term > (seen.lineage ? seen.lineage->term : 0));
  Lineage lineage = seen.lineage.value_or(own);
  lineage.term = claim.term;
  return {
      .compares = {IsAbsent(keys_.writer()), seen.lineage
                                                 ? HasValue(keys_.lineage(), seen.lineage_value)
                                                 : IsAbsent(keys_.lineage())},
      .then = {Put(keys_.lineage(), lineage.ToJson()), Put(keys_.writer(), claim.ToJson(), lease)},
      .otherwise = {Get(keys_.writer())}};
}

// An attempt before may have taken the claim, and its answer may be lost: the value tells.
std::optional<HeldClaim> ClaimedLog::ClaimOf(const TxnReply& reply,
                                             const cluster::Claim& claim) const {
  if (reply.succeeded) return HeldClaim{.claim = claim, .revision = reply.revision};
  const Row* const row = OnlyRow(Found(reply, 0));
  if (row == nullptr || row->value != claim.ToJson()) return {};
  return HeldClaim{.claim = claim, .revision = row->create_revision};
}

// It puts a key, since etcd has answered transactions that only read with what was before.
Txn ClaimedLog::Settle(const HeldClaim& held, uint64_t last) const {
  Txn txn = Look();
  txn.compares = IsWriter(held);
  txn.compares.push_back(IsAbsent(keys_.Slot(last + 1)));
  txn.otherwise = txn.then;
  txn.then.push_back(Put(keys_.leader(), held.claim.ToJson()));
  return txn;
}

Result<Fate> ClaimedLog::SettledOf(const TxnReply& reply, const HeldClaim& held,
                                   uint64_t last) const {
  const Result<LogView> view = ViewOf(reply);
  if (!view.ok()) return view.status();
  if (!reply.succeeded) {
    return IsMine(OnlyRow(Found(reply, 1)), held) ? Fate::kBehind : Fate::kDeposed;
  }
  if (view->end() < last) {
    return Status::Corruption("the log in etcd ends with batch " + std::to_string(view->end()) +
                              ", and this member has batch " + std::to_string(last) +
                              ": etcd has lost a part of what it had");
  }
  if (view->first > last + 1) {
    return Status::FailedPrecondition("the log in etcd begins with batch " +
                                      std::to_string(view->first) + ", behind batch " +
                                      std::to_string(last) + " of this member");
  }
  if (view->end() > last) {
    return Status::Corruption("the log in etcd lacks batch " + std::to_string(last + 1) +
                              " and goes on to batch " + std::to_string(view->end()) +
                              ": etcd has lost a part of what it had");
  }
  return Fate::kDone;
}

std::vector<Txn> ClaimedLog::Parts(const HeldClaim& held, const ledger::SealedBatch& batch) const {
  std::vector<Txn> txns;
  for (size_t index = 0; index < PartsFor(batch); ++index) {
    const std::string_view bytes = batch.bytes().substr(index * kValueBytesMax, kValueBytesMax);
    txns.push_back({.compares = IsWriter(held),
                    .then = {Put(keys_.Part(batch.number(), index), std::string(bytes))}});
  }
  return txns;
}

size_t ClaimedLog::PartsIn(std::string_view slot) {
  if (slot.size() != kInPartsBytes || slot.front() != kInParts) return 0;
  return LoadBigEndian<uint32_t>(slot.data() + kInPartsBytes - sizeof(uint32_t));
}

Txn ClaimedLog::ReadParts(uint64_t number, const std::string& slot) const {
  return {.compares = {HasValue(keys_.Slot(number), slot)},
          .then = {{.key = keys_.Part(number, 0), .end = keys_.Part(number, PartsIn(slot))}}};
}

std::optional<std::string> ClaimedLog::BatchOf(const TxnReply& reply) const {
  if (!reply.succeeded) return {};
  std::string bytes;
  for (const Row& row : Found(reply, 0)) bytes += row.value;
  return bytes;
}

Txn ClaimedLog::Append(const HeldClaim& held, const ledger::SealedBatch& batch, uint64_t last,
                       uint64_t trim) const {
  const std::string slot = keys_.Slot(batch.number());
  Txn txn{.compares = IsWriter(held), .then = {Put(slot, SlotOf(batch))}};
  txn.compares.push_back(IsAbsent(slot));
  // Each slot is put once.
  if (last > 0) txn.compares.push_back({.key = keys_.Slot(last), .number = 1});
  if (trim > 0) {
    txn.then.push_back(DeleteRange(keys_.Slot(0), keys_.Slot(trim + 1)));
    txn.then.push_back(DeleteRange(keys_.Part(0, 0), keys_.Part(trim + 1, 0)));
  }
  txn.otherwise = {Get(slot)};
  return txn;
}

// No other writer puts these bytes: their header has the term of the claim. So the slot alone
// tells, also when the claim has gone since.
Fate ClaimedLog::FateOf(const TxnReply& reply, const HeldClaim& held,
                        const ledger::SealedBatch& batch) const {
  NOWCALLS_CHECK(batch.term() == held.claim.term);
  if (reply.succeeded) return Fate::kDone;
  const Row* const row = OnlyRow(Found(reply, 0));
  return row != nullptr && row->value == SlotOf(batch) ? Fate::kDone : Fate::kDeposed;
}

Txn ClaimedLog::Resign(const HeldClaim& held) const {
  return {.compares = IsWriter(held),
          .then = {{.kind = Operation::Kind::kDelete, .key = keys_.writer()},
                   {.kind = Operation::Kind::kDelete, .key = keys_.leader()}}};
}

}  // namespace nowcalls::cluster
