// Members of a log in etcd, step by step, and requests whose answers were lost.
#include "cluster/claimed_log.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "ledger/commit_batch.h"
#include "support/fake_etcd.h"

namespace nowcalls::cluster {
namespace {

const std::string kCluster(32, 'c');

ledger::CommitBatch Batch(uint64_t number, uint64_t term, int64_t ledger_ms = 1) {
  ledger::CommitBatch batch;
  batch.Sealed({.batch_number = number, .next_fence = 1, .ledger_ms = ledger_ms}, term);
  return batch;
}

class Member {
 public:
  Member(testing::FakeEtcd* etcd, char name) : etcd_(etcd), name_(name) {}

  LogView Look() { return *log.ViewOf(Commit(log.Look())); }
  Claim NextClaim(const LogView& seen) const {
    return {.nonce = std::string(31, '0') + std::to_string(seen.lineage ? 1 : 0),
            .term = (seen.lineage ? seen.lineage->term : 0) + 1,
            .member = std::string(1, name_),
            .address = "h:1"};
  }
  void TakeClaim(uint64_t cluster_base = 0) {
    const LogView seen = Look();
    base = seen.lineage ? seen.lineage->base : cluster_base;
    lease = etcd_->GrantLease();
    const Claim claim = NextClaim(seen);
    held =
        log.ClaimOf(Commit(log.Claim(seen, claim, {.id = kCluster, .base = base}, lease)), claim);
  }
  Fate Append(uint64_t number, uint64_t trim = 0) {
    const ledger::CommitBatch batch = Batch(number, held->claim.term);
    const uint64_t last = number > base + 1 ? number - 1 : 0;
    return log.FateOf(Commit(log.Append(*held, batch, last, trim)), *held, batch);
  }
  Result<Fate> Settle(uint64_t last) {
    return log.SettledOf(Commit(log.Settle(*held, last)), *held, last);
  }
  ClaimedLog::SlotRun Read(uint64_t from, int64_t slots_max = 100) {
    return log.SlotsOf(Commit(log.Read(from, slots_max)), from);
  }
  TxnReply Commit(const Txn& txn) {
    Result<TxnReply> reply = etcd_->Commit(txn);
    REQUIRE_MESSAGE(reply.ok(), reply.status().message());
    return *std::move(reply);
  }

  ClaimedLog log{*Keys::Under("p")};
  std::optional<HeldClaim> held;
  uint64_t base = 0;
  int64_t lease = 0;

 private:
  testing::FakeEtcd* const etcd_;
  const char name_;
};

struct Pair {
  testing::FakeEtcd etcd;
  Member a{&etcd, 'a'};
  Member b{&etcd, 'b'};
};

TEST_CASE("the first claim begins the cluster behind the member's ledger") {
  Pair pair;
  CHECK_FALSE(pair.a.Look().lineage);
  pair.a.TakeClaim(/*cluster_base=*/7);
  REQUIRE(pair.a.held);
  const LogView seen = pair.b.Look();
  CHECK(*seen.lineage == Lineage{.id = kCluster, .base = 7, .term = 1});
  CHECK(seen.writer == pair.a.held->claim);
  CHECK(seen.end() == 7);
  CHECK(*pair.a.Settle(7) == Fate::kDone);
  CHECK(pair.a.Append(8) == Fate::kDone);
  CHECK(pair.b.Look().end() == 8);
}

TEST_CASE("of two claims at once one is taken") {
  Pair pair;
  const LogView seen = pair.a.Look();
  const Claim of_a = pair.a.NextClaim(seen);
  const Claim of_b = pair.b.NextClaim(seen);
  const int64_t lease = pair.etcd.GrantLease();
  const TxnReply to_b = pair.b.Commit(pair.b.log.Claim(seen, of_b, {.id = kCluster}, lease));
  CHECK(pair.b.log.ClaimOf(to_b, of_b));
  const TxnReply to_a = pair.a.Commit(pair.a.log.Claim(seen, of_a, {.id = kCluster}, lease));
  CHECK_FALSE(pair.a.log.ClaimOf(to_a, of_a));
}

TEST_CASE("a claim whose answer was lost is found by its value") {
  Pair pair;
  const LogView seen = pair.a.Look();
  const Claim claim = pair.a.NextClaim(seen);
  const Txn txn = pair.a.log.Claim(seen, claim, {.id = kCluster}, pair.etcd.GrantLease());
  const TxnReply lost = pair.a.Commit(txn);
  const auto held = pair.a.log.ClaimOf(pair.a.Commit(txn), claim);
  REQUIRE(held);
  CHECK(held->revision == lost.revision);
}

TEST_CASE("a claim that went with its lease is not taken again by a late repetition") {
  Pair pair;
  const LogView seen = pair.a.Look();
  const Claim claim = pair.a.NextClaim(seen);
  const int64_t lease = pair.etcd.GrantLease();
  const Txn txn = pair.a.log.Claim(seen, claim, {.id = kCluster}, lease);
  pair.a.Commit(txn);
  pair.etcd.EndLease(lease);
  CHECK_FALSE(pair.a.log.ClaimOf(pair.a.Commit(txn), claim));
  CHECK_FALSE(pair.a.Look().writer);
}

TEST_CASE("a batch whose answer was lost is done, and is not there twice") {
  Pair pair;
  pair.a.TakeClaim();
  CHECK(pair.a.Append(1) == Fate::kDone);
  const int64_t revision = pair.etcd.revision();
  CHECK(pair.a.Append(1) == Fate::kDone);
  CHECK(pair.etcd.revision() == revision);
  SUBCASE("also when the claim has gone since") {
    pair.etcd.EndLease(pair.a.lease);
    CHECK(pair.a.Append(1) == Fate::kDone);
    CHECK(pair.a.Append(2) == Fate::kDeposed);
  }
}

TEST_CASE("a writer without its claim writes nothing") {
  Pair pair;
  pair.a.TakeClaim();
  CHECK(pair.a.Append(1) == Fate::kDone);
  pair.etcd.EndLease(pair.a.lease);
  SUBCASE("while nobody has one") {}
  SUBCASE("while another has it") { pair.b.TakeClaim(); }
  SUBCASE("when the other has written its number") {
    pair.b.TakeClaim();
    CHECK(pair.b.held->claim.term == 2);
    CHECK(pair.b.Append(2) == Fate::kDone);
  }
  const uint64_t end = pair.b.Look().end();
  CHECK(pair.a.Append(2) == Fate::kDeposed);
  CHECK(pair.b.Look().end() == end);
  CHECK(*pair.a.Settle(end) == Fate::kDeposed);
}

// After a restore of etcd a key may have the revision of another that was there before.
TEST_CASE("a claim is told by its value too") {
  Pair pair;
  pair.a.TakeClaim();
  HeldClaim other = *pair.a.held;
  other.claim.nonce = std::string(32, 'f');
  const ledger::CommitBatch batch = Batch(1, 1);
  const TxnReply reply = pair.b.Commit(pair.b.log.Append(other, batch, /*last=*/0, /*trim=*/0));
  CHECK(pair.b.log.FateOf(reply, other, batch) == Fate::kDeposed);
}

TEST_CASE("a takeover is settled when all batches have been read") {
  Pair pair;
  pair.a.TakeClaim();
  for (uint64_t number = 1; number <= 3; ++number) CHECK(pair.a.Append(number) == Fate::kDone);
  CHECK(pair.b.Read(1, 2).batches.size() == 2);
  pair.etcd.EndLease(pair.a.lease);
  pair.b.TakeClaim();
  CHECK(*pair.b.Settle(2) == Fate::kBehind);
  const auto rest = pair.b.Read(3);
  REQUIRE(rest.batches.size() == 1);
  CHECK(ledger::SealedBatch::Parse(rest.batches[0])->number() == 3);
  CHECK(*pair.b.Settle(3) == Fate::kDone);
  CHECK(pair.etcd.rows().at("/p/leader").value == pair.b.held->claim.ToJson());
  CHECK(pair.b.Append(4) == Fate::kDone);
}

TEST_CASE("slots that are trimmed are missed, and only by those that need them") {
  Pair pair;
  pair.a.TakeClaim();
  for (uint64_t number = 1; number <= 5; ++number) pair.a.Append(number, number == 5 ? 3 : 0);
  CHECK(pair.b.Look().first == 4);
  CHECK(pair.b.Read(3).trimmed);
  CHECK(pair.b.Read(3).batches.empty());
  CHECK_FALSE(pair.b.Read(4).trimmed);
  CHECK(pair.b.Read(4).batches.size() == 2);
  CHECK_FALSE(pair.b.Read(6).trimmed);
  CHECK(pair.b.Read(6).batches.empty());
  pair.etcd.EndLease(pair.a.lease);
  pair.b.TakeClaim();
  CHECK(pair.b.Settle(2).status().message() ==
        "the log in etcd begins with batch 4, behind batch 2 of this member");
  CHECK(pair.b.Look().end() == 5);
}

TEST_CASE("a member with a ledger of before the cluster's log misses its base") {
  Pair pair;
  pair.a.TakeClaim(/*cluster_base=*/7);
  CHECK(pair.b.Read(1).trimmed);
  CHECK(pair.b.Read(7).trimmed);
  CHECK_FALSE(pair.b.Read(8).trimmed);
}

TEST_CASE("an etcd that has lost batches is told") {
  Pair pair;
  pair.a.TakeClaim();
  for (uint64_t number = 1; number <= 4; ++number) pair.a.Append(number);
  const std::string hole = pair.a.log.keys().Slot(3);
  const std::string behind = pair.a.log.keys().Slot(5);
  uint64_t applied = 4;
  const char* problem = nullptr;
  SUBCASE("the last ones") {
    pair.a.Commit({.then = {DeleteRange(hole, behind)}});
    problem =
        "the log in etcd ends with batch 2, and this member has batch 4: etcd has lost a part of "
        "what it had";
  }
  SUBCASE("one of them") {
    pair.a.Commit({.then = {{.kind = Operation::Kind::kDelete, .key = hole}}});
    applied = 2;
    problem =
        "the log in etcd lacks batch 3 and goes on to batch 4: etcd has lost a part of what it had";
    CHECK(pair.b.Read(2).batches.size() == 1);
  }
  pair.etcd.EndLease(pair.a.lease);
  pair.b.TakeClaim();
  const auto settled = pair.b.Settle(applied);
  CHECK(settled.status().code() == StatusCode::kCorruption);
  CHECK(settled.status().message() == problem);
}

TEST_CASE("a writer whose last batch etcd has lost writes nothing behind it") {
  Pair pair;
  pair.a.TakeClaim();
  REQUIRE(pair.a.Append(1) == Fate::kDone);
  REQUIRE(pair.a.Append(2) == Fate::kDone);
  const std::string lost = pair.a.log.keys().Slot(2);
  pair.a.Commit({.then = {DeleteRange(lost, {})}});
  CHECK(pair.a.Append(3) == Fate::kDeposed);
  CHECK(pair.a.Look().last == 1);
}

TEST_CASE("a writer that resigns leaves the claim to others at once") {
  Pair pair;
  pair.a.TakeClaim();
  pair.a.Commit(pair.a.log.Resign(*pair.a.held));
  CHECK_FALSE(pair.b.Look().writer);
  CHECK_FALSE(pair.b.Look().leader);
  pair.b.TakeClaim();
  REQUIRE(pair.b.held);
  pair.a.Commit(pair.a.log.Resign(*pair.a.held));
  CHECK(pair.b.Look().writer == pair.b.held->claim);
}

TEST_CASE("keys of somebody else are told") {
  Pair pair;
  pair.a.Commit({.then = {Put("/p/writer", "me")}});
  const TxnReply reply = pair.a.Commit(pair.a.log.Look());
  CHECK(pair.a.log.ViewOf(reply).status().code() == StatusCode::kCorruption);
}

}  // namespace
}  // namespace nowcalls::cluster
