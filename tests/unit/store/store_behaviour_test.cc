// What every store does, run against MemoryStore and against RocksStore with buffers so small that
// flushes and compactions happen all the time.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "store/memory_store.h"
#include "store/rocks/rocks_store.h"
#include "support/temp_dir.h"
#include "unit/store/ledger_script.h"

namespace nowcalls::store {
namespace {

using ledger::CommitBatch;
using ledger::Family;
using ledger::ScanRequest;
using ledger::ScanResult;
using ledger::Token;
using ledger::TokenKey;

class MemoryFixture {
 public:
  Store& store() { return store_; }
  void Reopen() {}

 private:
  MemoryStore store_{ledger::Format{}};
};

class RocksFixture {
 public:
  RocksFixture() { Open(); }
  Store& store() { return *store_; }
  // Without Close, so that the log is replayed.
  void Reopen() {
    store_.reset();
    Open();
  }

 private:
  void Open() {
    RocksStoreOptions options;
    options.durability = Durability::kNone;
    options.write_buffer_bytes = 64 * 1024;
    auto opened = RocksStore::Open(dir_.path(), options);
    REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
    store_ = *std::move(opened);
  }

  const testing::TempDir dir_;
  std::unique_ptr<RocksStore> store_;
};

void CommitNext(LedgerScript* script, int records, Store* store) {
  CommitBatch batch;
  script->NextBatch(records, &batch);
  const Status status = store->Commit(batch);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
}

// All pages of a walk over the tokens that are expired at `upper_ms`.
std::vector<TokenKey> Walk(Store* store, ScanRequest request) {
  std::vector<TokenKey> keys;
  ScanResult result;
  do {
    store->Scan(request, &result);
    REQUIRE_MESSAGE(result.status.ok(), result.status.ToString());
    REQUIRE(result.expired.size() <= request.keys_max);
    keys.insert(keys.end(), result.expired.begin(), result.expired.end());
    request.resume = true;
    if (result.more) request.after = result.expired.back();
  } while (result.more);
  return keys;
}

std::vector<TokenKey> ExpiredIn(const LedgerScript& script, int64_t lower_ms, int64_t upper_ms) {
  std::vector<TokenKey> keys;
  for (const auto& [key, token] : script.tokens()) {
    if (key.deadline_ms >= lower_ms && key.deadline_ms <= upper_ms) keys.push_back(key);
  }
  return keys;
}

Token TokenAt(Family family, int64_t deadline_ms, uint64_t id) {
  Token token;
  token.key = {family, deadline_ms, TokenId(id)};
  token.flow = FlowId(1);
  token.session = SessionId(1);
  token.count = 1;
  token.fence = Fence(id);
  return token;
}

void CommitSealed(Store* store, CommitBatch* batch, uint64_t number, int64_t ledger_ms = 0) {
  batch->Sealed({number, 1000, ledger_ms, 0, 0, 0});
  const Status status = store->Commit(*batch);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  batch->Clear();
}

TEST_CASE_TEMPLATE("a new ledger shows its format and nothing else", F, MemoryFixture,
                   RocksFixture) {
  F fixture;
  CHECK(DumpOf(&fixture.store()).empty());
}

TEST_CASE_TEMPLATE("a load shows exactly what was committed, also after opening again", F,
                   MemoryFixture, RocksFixture) {
  F fixture;
  LedgerScript script(1);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 40; ++i) CommitNext(&script, 60, &fixture.store());
    CHECK(DifferenceOf(DumpOf(&fixture.store()), script.Expected()) == "");
    fixture.Reopen();
    CHECK(DifferenceOf(DumpOf(&fixture.store()), script.Expected()) == "");
  }
  CHECK(script.tokens().size() > 1000);
  CommitBatch batch;
  script.LastBatch(&batch);
  REQUIRE(fixture.store().Commit(batch).ok());
  fixture.Reopen();
  CHECK(script.tokens().empty());
  CHECK(DifferenceOf(DumpOf(&fixture.store()), script.Expected()) == "");
}

TEST_CASE_TEMPLATE("a scan in pages of any size finds every expired token once, in order", F,
                   MemoryFixture, RocksFixture) {
  F fixture;
  LedgerScript script(2);
  for (int i = 0; i < 60; ++i) CommitNext(&script, 60, &fixture.store());
  for (const int64_t upper_ms :
       {script.now_ms() - 1000, script.now_ms(), script.now_ms() + 20'000, kScriptStartMs * 2}) {
    const std::vector<TokenKey> expected = ExpiredIn(script, 0, upper_ms);
    for (const uint32_t keys_max : {1u, 7u, 100u, 1'000'000u}) {
      ScanRequest request;
      request.upper_ms = upper_ms;
      request.keys_max = keys_max;
      CHECK(Walk(&fixture.store(), request) == expected);
    }
  }
}

TEST_CASE_TEMPLATE("a scan keeps to its bounds, both included", F, MemoryFixture, RocksFixture) {
  F fixture;
  CommitBatch batch;
  for (const Family family : ledger::kTokenFamilies) {
    for (const int64_t deadline_ms : {99, 100, 200, 201}) {
      batch.TokenIssued(TokenAt(family, deadline_ms, static_cast<uint64_t>(deadline_ms)));
    }
  }
  CommitSealed(&fixture.store(), &batch, 1);
  ScanRequest request;
  request.lower_ms = 100;
  request.upper_ms = 200;
  std::vector<TokenKey> expected;
  for (const Family family : ledger::kTokenFamilies) {
    expected.push_back({family, 100, TokenId(100)});
    expected.push_back({family, 200, TokenId(200)});
  }
  CHECK(Walk(&fixture.store(), request) == expected);
  request.keys_max = 1;
  CHECK(Walk(&fixture.store(), request) == expected);
  request.lower_ms = 202;
  request.upper_ms = INT64_MAX;
  CHECK(Walk(&fixture.store(), request).empty());
  request.lower_ms = 201;
  request.upper_ms = 100;
  CHECK(Walk(&fixture.store(), request).empty());
}

TEST_CASE_TEMPLATE("a step that is full says more, and the step behind the last key says no more",
                   F, MemoryFixture, RocksFixture) {
  F fixture;
  CommitBatch batch;
  batch.TokenIssued(TokenAt(Family::kTokensShort, 10, 1));
  batch.TokenIssued(TokenAt(Family::kTokensLong, 10, 2));
  CommitSealed(&fixture.store(), &batch, 1);
  ScanRequest request;
  request.upper_ms = 10;
  request.keys_max = 2;
  ScanResult result;
  fixture.store().Scan(request, &result);
  CHECK(result.expired.size() == 2);
  CHECK(result.more);
  request.resume = true;
  request.after = result.expired.back();
  fixture.store().Scan(request, &result);
  CHECK(result.expired.empty());
  CHECK_FALSE(result.more);
  request.resume = false;
  request.keys_max = 3;
  fixture.store().Scan(request, &result);
  CHECK(result.expired.size() == 2);
  CHECK_FALSE(result.more);
}

TEST_CASE_TEMPLATE("a scan with hardly any time still gets on by at least one key a step", F,
                   MemoryFixture, RocksFixture) {
  F fixture;
  LedgerScript script(3);
  for (int i = 0; i < 10; ++i) CommitNext(&script, 60, &fixture.store());
  ScanRequest request;
  request.upper_ms = kScriptStartMs * 2;
  request.budget_us = 1;
  CHECK(Walk(&fixture.store(), request) == ExpiredIn(script, 0, request.upper_ms));
}

TEST_CASE_TEMPLATE("a walk misses no token that lives through it while others come and go", F,
                   MemoryFixture, RocksFixture) {
  F fixture;
  LedgerScript script(4);
  for (int i = 0; i < 20; ++i) CommitNext(&script, 60, &fixture.store());
  ScanRequest request;
  request.upper_ms = kScriptStartMs * 2;
  request.keys_max = 10;
  std::vector<TokenKey> survivors = ExpiredIn(script, 0, request.upper_ms);
  std::vector<TokenKey> seen;
  ScanResult result;
  do {
    fixture.store().Scan(request, &result);
    REQUIRE(result.status.ok());
    seen.insert(seen.end(), result.expired.begin(), result.expired.end());
    if (result.more) request.after = result.expired.back();
    request.resume = true;
    CommitNext(&script, 30, &fixture.store());
    std::erase_if(survivors, [&](const TokenKey& key) { return !script.tokens().contains(key); });
  } while (result.more);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(survivors.size() > 10);
  CHECK(std::includes(seen.begin(), seen.end(), survivors.begin(), survivors.end()));
}

TEST_CASE_TEMPLATE("a new walk does not see what ended during the one before", F, MemoryFixture,
                   RocksFixture) {
  F fixture;
  CommitBatch batch;
  for (uint64_t id = 1; id <= 4; ++id) {
    batch.TokenIssued(TokenAt(Family::kTokensShort, 10, id));
  }
  CommitSealed(&fixture.store(), &batch, 1);
  ScanRequest request;
  request.upper_ms = 10;
  request.keys_max = 2;
  ScanResult result;
  fixture.store().Scan(request, &result);
  REQUIRE(result.more);
  batch.TokenEnded({Family::kTokensShort, 10, TokenId(3)}, EndReason::kResourceTimeout);
  CommitSealed(&fixture.store(), &batch, 2);
  request.keys_max = 10;
  CHECK(Walk(&fixture.store(), request).size() == 3);
}

TEST_CASE_TEMPLATE("a kept token is found under its new deadline and in its new family only", F,
                   MemoryFixture, RocksFixture) {
  F fixture;
  CommitBatch batch;
  batch.TokenIssued(TokenAt(Family::kTokensShort, 10, 1));
  CommitSealed(&fixture.store(), &batch, 1);
  fixture.Reopen();
  batch.TokenKept({Family::kTokensShort, 10, TokenId(1)}, TokenAt(Family::kTokensLong, 99, 1));
  CommitSealed(&fixture.store(), &batch, 2);
  ScanRequest request;
  request.upper_ms = 1000;
  const std::vector<TokenKey> expected = {{Family::kTokensLong, 99, TokenId(1)}};
  CHECK(Walk(&fixture.store(), request) == expected);
  fixture.Reopen();
  CHECK(Walk(&fixture.store(), request) == expected);
}

TEST_CASE_TEMPLATE("a server's load starts at the watermark", F, MemoryFixture, RocksFixture) {
  F fixture;
  CommitBatch batch;
  batch.TokenIssued(TokenAt(Family::kTokensShort, 99, 1));
  batch.TokenIssued(TokenAt(Family::kTokensLong, 100, 2));
  batch.WatermarkRaised(100);
  CommitSealed(&fixture.store(), &batch, 1, /*ledger_ms=*/100);
  const Dump dump = DumpOf(&fixture.store());
  REQUIRE(dump.size() == 3);
  CHECK(dump[1] == "watermark 100");
  CHECK(dump[2].starts_with("token tokens_long 0000000000000064"));
}

TEST_CASE_TEMPLATE("a visitor that refuses ends the load with its reason", F, MemoryFixture,
                   RocksFixture) {
  struct Refusing : ledger::EntityVisitor {
    Status OnEntity(const ledger::Entity& entity) override {
      if (ledger::As<Token>(entity) == nullptr) return {};
      ++tokens;
      return Status::ResourceExhausted("enough");
    }
    int tokens = 0;
  };
  F fixture;
  CommitBatch batch;
  batch.TokenIssued(TokenAt(Family::kTokensShort, 10, 1));
  batch.TokenIssued(TokenAt(Family::kTokensShort, 10, 2));
  CommitSealed(&fixture.store(), &batch, 1);
  Refusing visitor;
  const Status status = fixture.store().Load(&visitor);
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(status.message() == "enough");
  CHECK(visitor.tokens == 1);
}

}  // namespace
}  // namespace nowcalls::store
