// Members that begin a cluster, enter one, follow and take over, on a simulated etcd.
#include "member/follower.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/hex.h"
#include "ledger/codec.h"
#include "ledger/commit_batch.h"
#include "store/memory_tables.h"
#include "support/flaky_etcd.h"
#include "support/poll_until.h"
#include "support/temp_dir.h"

namespace nowcalls::member {
namespace {

constexpr uint64_t kLogBytesMax = 256 << 20;

ledger::Format FormatOf(uint64_t key) { return {.token_id_key = {key, key}}; }

class Member {
 public:
  explicit Member(testing::FlakyEtcd* of, uint64_t format_key = 1, const char* prefix = "p")
      : etcd(of),
        log(of, *cluster::Keys::Under(prefix), kLogBytesMax, [](const Status&) {}),
        format_(FormatOf(format_key)),
        tables(format_) {
    Begin();
  }

  // As after a start.
  void Begin() {
    follower.reset();
    Result<std::optional<Identity>> identity = ReadIdentity(dir.path());
    REQUIRE(identity.ok());
    follower =
        std::make_unique<Follower>(etcd, &log, &tables,
                                   FollowerOptions{.data_dir = dir.path(),
                                                   .prefix = "/p",
                                                   .address = "h:1",
                                                   .format = ToHex(ledger::EncodeFormat(format_)),
                                                   .holds_off_until_ms = holds_off_until_ms},
                                   *std::move(identity));
  }
  // Whether it has a claim now.
  bool Step() {
    Result<std::optional<FreshClaim>> step = follower->Step();
    REQUIRE_MESSAGE(step.ok(), step.status().message());
    if (!*step) return false;
    claim = **step;
    return true;
  }
  cluster::Fate Settle() const {
    const Result<cluster::Fate> fate = follower->Settle();
    REQUIRE_MESSAGE(fate.ok(), fate.status().message());
    return *fate;
  }
  void Lead() {
    REQUIRE(Step());
    REQUIRE(Settle() == cluster::Fate::kDone);
  }
  Status Append(int64_t ledger_ms = 1) {
    ledger::CommitBatch batch;
    batch.Sealed({.batch_number = tables.applied() + 1, .next_fence = 1, .ledger_ms = ledger_ms},
                 claim.held.claim.term);
    NOWCALLS_RETURN_IF_ERROR(log.Append(batch));
    return tables.Apply(batch);
  }

  testing::TempDir dir;
  testing::FlakyEtcd* const etcd;
  int64_t holds_off_until_ms = 0;
  EtcdLog log;
  ledger::Format format_;
  store::MemoryTables tables;
  std::unique_ptr<Follower> follower;
  FreshClaim claim;
};

TEST_CASE("the first member begins the cluster, the second enters it and takes over") {
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  a.Lead();
  CHECK(a.claim.held.claim.term == 1);
  CHECK(a.follower->identity()->joined);
  CHECK_FALSE(b.Step());
  CHECK(b.follower->identity()->cluster == a.follower->identity()->cluster);
  CHECK(b.follower->identity()->member != a.follower->identity()->member);
  CHECK(b.follower->writer()->address == "h:1");
  for (int i = 0; i < 300; ++i) REQUIRE(a.Append().ok());
  CHECK_FALSE(b.Step());
  CHECK(b.tables.applied() == 256);
  CHECK(b.follower->lag() == 44);
  CHECK_FALSE(b.Step());
  CHECK(b.follower->lag() == 0);
  etcd.EndLease(a.claim.lease.id);
  b.Lead();
  CHECK(b.claim.held.claim.term == 2);
  CHECK(a.Append().code() == StatusCode::kFailedPrecondition);
  CHECK(b.Append().ok());
  // The deposed one is a standby again.
  a.Begin();
  CHECK_FALSE(a.Step());
  CHECK(a.tables.applied() == b.tables.applied());
}

TEST_CASE("a claim says why nobody had one") {
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  a.Lead();
  CHECK(a.claim.why == "it begins the cluster");
  CHECK_FALSE(b.Step());
  REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
  b.Lead();
  CHECK(b.claim.why == "h:1 handed over");
  etcd.EndLease(b.claim.lease.id);
  a.Begin();
  a.Lead();
  CHECK(a.claim.why == "the lease of h:1 in term 2 has ended");
  REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
  Member c(&etcd);
  c.Lead();
  CHECK(c.claim.why == "the writer handed over");
}

TEST_CASE("a member that has handed over lets others go first, until one of them has written") {
  constexpr int64_t kLongMs = 3'600'000;
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  a.Lead();
  CHECK_FALSE(b.Step());
  a.holds_off_until_ms = BoottimeMs() + kLongMs;
  a.Begin();
  SUBCASE("its own claim that is still there changes nothing") {
    CHECK_FALSE(a.Step());
    etcd.EndLease(a.claim.lease.id);
    CHECK_FALSE(a.Step());
    CHECK_FALSE(a.Step());
  }
  SUBCASE("nor does a claim that was given back") {
    REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
    CHECK_FALSE(a.Step());
    b.Lead();
    CHECK_FALSE(a.Step());
    etcd.EndLease(b.claim.lease.id);
    a.Lead();
  }
  SUBCASE("it claims when the time is over") {
    REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
    a.holds_off_until_ms = BoottimeMs();
    a.Begin();
    a.Lead();
  }
}

TEST_CASE("of two that begin at once one leads, and the other makes its tables anew") {
  testing::FlakyEtcd etcd;
  Member a(&etcd, 1);
  Member b(&etcd, 2);
  a.Lead();
  REQUIRE(a.Append().ok());
  CHECK(b.follower->Step().status().code() == StatusCode::kFailedPrecondition);
  CHECK(b.follower->needs() == Part::kEnter);
  CHECK(b.tables.applied() == 0);
  CHECK_FALSE(ReadIdentity(b.dir.path())->has_value());
}

TEST_CASE("a batch of another cluster is never applied") {
  testing::FlakyEtcd etcd;
  Member a(&etcd, 1);
  Member b(&etcd, 1, "q");
  a.Lead();
  b.Lead();
  REQUIRE(a.Append().ok());
  REQUIRE(b.Append().ok());
  REQUIRE(a.Append().ok());
  Member lost(&etcd, 1, "p");
  REQUIRE(WriteIdentity(lost.dir.path(), *b.follower->identity()).ok());
  ledger::CommitBatch batch;
  batch.Sealed({.batch_number = 1, .next_fence = 1, .ledger_ms = 1}, 1);
  REQUIRE(lost.tables.Apply(batch).ok());
  lost.Begin();
  CHECK(lost.follower->Step().status().code() == StatusCode::kCorruption);
  CHECK(lost.tables.applied() == 1);
}

TEST_CASE("a claim whose answer is lost is taken, or given back") {
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  SUBCASE("it is answered at the second attempt") { etcd.LoseAnswers(1, /*behind=*/1); }
  SUBCASE("it is never answered") {
    etcd.LoseAnswers(3, /*behind=*/1);
    CHECK(a.follower->Step().status().code() == StatusCode::kOutcomeUnknown);
    CHECK(etcd.etcd()->rows().count("/p/writer") == 0);
    // The member may have begun the cluster, and knows it as its own after a start.
    CHECK_FALSE(a.follower->identity()->joined);
    a.Begin();
  }
  SUBCASE("no lease is granted") {
    etcd.SetAway(true);
    CHECK(a.follower->Step().status().code() == StatusCode::kUnavailable);
    etcd.SetAway(false);
  }
  a.Lead();
  CHECK(a.follower->identity()->joined);
  CHECK(a.Append().ok());
}

TEST_CASE("a member that lost etcd during its takeover reads on") {
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  a.Lead();
  REQUIRE(a.Append().ok());
  CHECK_FALSE(b.Step());
  REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
  REQUIRE(b.Step());
  etcd.LoseAnswers(1);
  CHECK(b.follower->Settle().status().code() == StatusCode::kOutcomeUnknown);
  CHECK(b.Settle() == cluster::Fate::kDone);
  CHECK(b.Append().ok());
}

TEST_CASE("a member that is deposed before it settles goes back") {
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  REQUIRE(a.Step());
  etcd.EndLease(a.claim.lease.id);
  b.Lead();
  CHECK(a.Settle() == cluster::Fate::kDeposed);
  REQUIRE(b.Append().ok());
  CHECK(a.Settle() == cluster::Fate::kDeposed);
}

TEST_CASE("time goes on from what a standby saw, while a writer lived") {
  constexpr int64_t kLedgerMs = 1'700'000'000'000;
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  a.Lead();
  REQUIRE(a.Append(kLedgerMs).ok());
  Member b(&etcd);
  SUBCASE("nothing was seen of a writer that is gone") {
    REQUIRE(etcd.Commit(a.log.txns().Resign(a.claim.held)).ok());
    REQUIRE(b.Step());
    CHECK_FALSE(b.follower->observed().At(0));
  }
  SUBCASE("the last batch was seen") {
    CHECK_FALSE(b.Step());
    const int64_t now_ms = BoottimeMs();
    const std::optional<Instant> at = b.follower->observed().At(now_ms);
    REQUIRE(at);
    CHECK(at->ms >= kLedgerMs);
    CHECK(at->ms <= kLedgerMs + 60'000);
    CHECK(b.follower->observed().At(now_ms + 500)->ms == at->ms + 500);
  }
}

TEST_CASE("of the clocks of two writers that of the last one counts, though it is later") {
  constexpr int64_t kLedgerMs = 1'700'000'000'000;
  testing::FlakyEtcd etcd;
  Member a(&etcd);
  Member b(&etcd);
  Member c(&etcd);
  a.Lead();
  REQUIRE(a.Append(kLedgerMs).ok());
  CHECK_FALSE(b.Step());
  CHECK_FALSE(c.Step());
  const int64_t seen_ms = BoottimeMs();
  constexpr int64_t kLaterMs = 20;
  REQUIRE(testing::PollUntil(10'000, [&] { return BoottimeMs() > seen_ms + kLaterMs; }));
  etcd.EndLease(a.claim.lease.id);
  b.Lead();
  REQUIRE(b.Append(kLedgerMs + 1).ok());
  const int64_t now_ms = BoottimeMs();
  CHECK(c.follower->observed().At(now_ms)->ms > kLedgerMs + kLaterMs);
  CHECK_FALSE(c.Step());
  CHECK(c.follower->observed().At(now_ms)->ms <= kLedgerMs + 1);
}

}  // namespace
}  // namespace nowcalls::member
