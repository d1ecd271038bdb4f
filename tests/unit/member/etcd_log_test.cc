// Appends and reads of a member whose requests and answers get lost.
#include "member/etcd_log.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "ledger/commit_batch.h"
#include "member/cluster_store.h"
#include "store/memory_store.h"
#include "support/flaky_etcd.h"
#include "support/poll_until.h"

namespace nowcalls::member {
namespace {

constexpr uint64_t kBytesMax = 40'000;

ledger::CommitBatch Batch(uint64_t number, uint64_t term = 1, size_t bytes = 0) {
  ledger::CommitBatch batch;
  // Rules are the longest records.
  for (int64_t flow = 1; bytes > 0; ++flow) {
    const size_t some = std::min<size_t>(bytes, 60'000);
    batch.RuleSet({.name_space = "n",
                   .flow = static_cast<FlowId>(flow),
                   .json = R"({"x":")" + std::string(some, 'x') + "\"}"});
    bytes -= some;
  }
  batch.Sealed({.batch_number = number, .next_fence = 1, .ledger_ms = 1}, term);
  return batch;
}

struct Writer {
  explicit Writer(testing::FlakyEtcd* of) : etcd(of) {}

  void TakeClaim() {
    REQUIRE(log.Read(1, [](const auto&) { return Status::Ok(); }).ok());
    const cluster::Claim claim{.nonce = std::string(32, '1'), .term = 1, .member = "a"};
    const auto reply = etcd->Commit(
        log.txns().Claim(log.view(), claim, {.id = std::string(32, 'c')}, etcd->Grant(1)->id));
    held = *log.txns().ClaimOf(*reply, claim);
    log.Hold(held);
  }
  std::vector<uint64_t> Numbers(uint64_t from) {
    std::vector<uint64_t> numbers;
    const Status read = log.Read(from, [&](const ledger::SealedBatch& batch) {
      numbers.push_back(batch.number());
      return Status::Ok();
    });
    REQUIRE_MESSAGE(read.ok(), read.message());
    return numbers;
  }

  testing::FlakyEtcd* const etcd;
  std::vector<StatusCode> troubles;
  EtcdLog log{etcd, *cluster::Keys::Under("p"), kBytesMax,
              [this](const Status& status) { troubles.push_back(status.code()); }};
  cluster::HeldClaim held;
};

TEST_CASE("an append is asked for again until it is answered, and told once") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  etcd.LoseRequests(2);
  CHECK(member.log.Append(Batch(1)).ok());
  etcd.LoseAnswers(2);
  CHECK(member.log.Append(Batch(2)).ok());
  CHECK(member.troubles.size() == 6);
  CHECK(member.troubles.back() == StatusCode::kOk);
  CHECK(member.Numbers(1) == std::vector<uint64_t>{1, 2});
  CHECK(member.log.OutlivesMachine());
}

TEST_CASE("an append behind what etcd has lost is refused") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  REQUIRE(member.log.Append(Batch(1)).ok());
  REQUIRE(member.log.Append(Batch(2)).ok());
  const std::string lost = member.log.txns().keys().Slot(2);
  REQUIRE(etcd.Commit({.then = {cluster::DeleteRange(lost, {})}}).ok());
  CHECK(member.log.Append(Batch(3)).code() == StatusCode::kFailedPrecondition);
  CHECK(member.Numbers(1) == std::vector<uint64_t>{1});
}

TEST_CASE("a batch beyond one request's size goes in parts, and comes back whole") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  const ledger::CommitBatch large = Batch(1, 1, 3 << 20);
  etcd.LoseAnswers(3);
  REQUIRE(member.log.Append(large).ok());
  REQUIRE(member.log.Append(Batch(2)).ok());
  std::string read;
  REQUIRE(member.log
              .Read(1,
                    [&](const ledger::SealedBatch& batch) {
                      read += batch.bytes();
                      return Status::Ok();
                    })
              .ok());
  CHECK(read == std::string(large.sealed_bytes()) + std::string(Batch(2).sealed_bytes()));
  for (const auto& [key, row] : etcd.etcd()->rows()) {
    CHECK(row.value.size() <= cluster::ClaimedLog::kValueBytesMax);
  }
  // They go with their slot.
  REQUIRE(member.log.Trim(1'000).ok());
  for (uint64_t number = 3; number < 210; ++number) REQUIRE(member.log.Append(Batch(number)).ok());
  for (const auto& [key, row] : etcd.etcd()->rows()) CHECK(key.find("parts/") == std::string::npos);
  CHECK(member.log.Read(1, [](const auto&) { return Status::Ok(); }).code() ==
        StatusCode::kFailedPrecondition);
}

TEST_CASE("a writer without its claim appends nothing, not even a part") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  REQUIRE(etcd.Commit(member.log.txns().Resign(member.held)).ok());
  CHECK(member.log.Append(Batch(1)).code() == StatusCode::kFailedPrecondition);
  CHECK(member.log.Append(Batch(1, 1, 3 << 20)).code() == StatusCode::kFailedPrecondition);
  CHECK(member.Numbers(1).empty());
  CHECK_FALSE(member.log.OutlivesMachine());
}

TEST_CASE("an append without an answer ends when the claim is given up") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  etcd.LoseRequests(1'000'000);
  const int before = etcd.commits();
  Status appended;
  std::thread thread([&] { appended = member.log.Append(Batch(1)); });
  CHECK(testing::PollUntil(testing::kPatienceMs, [&] { return etcd.commits() > before + 2; }));
  member.log.GiveUp();
  thread.join();
  CHECK(appended.code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("a log that is too long forgets what a member lacks") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  for (uint64_t number = 1; number <= 210; ++number) {
    REQUIRE(member.log.Append(Batch(number)).ok());
  }
  CHECK(member.Numbers(1).size() == 210);
  REQUIRE(member.log.Trim(5).ok());
  REQUIRE(member.log.Append(Batch(211)).ok());
  CHECK(member.Numbers(6).front() == 6);
  CHECK(member.log.Read(5, [](const auto&) { return Status::Ok(); }).code() ==
        StatusCode::kFailedPrecondition);
}

TEST_CASE("tables get a batch that its owner has reused meanwhile") {
  testing::FlakyEtcd etcd;
  Writer member(&etcd);
  member.TakeClaim();
  store::MemoryStore local({});
  ClusterStore store(&member.log, &local);
  ledger::CommitBatch batch = Batch(1);
  bool told = false;
  REQUIRE(store
              .CommitTelling(batch,
                             [&] {
                               told = local.applied() == 0;
                               batch.Clear();
                             })
              .ok());
  CHECK(told);
  CHECK(store.applied() == 1);
  CHECK(store.last() == 1);
  CHECK(store.synced() == 0);
  REQUIRE(store.Sync().ok());
  CHECK(store.synced() == 1);
}

}  // namespace
}  // namespace nowcalls::member
