// ServedLedger: a core over a ledger on disk, as a server has it.
//
// Thread: one at a time. Every call is committed at once.
#ifndef NOWCALLS_UNIT_BACKUP_SERVED_LEDGER_H_
#define NOWCALLS_UNIT_BACKUP_SERVED_LEDGER_H_

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/core.h"
#include "ledger/commit_batch.h"
#include "store/rocks/ledger_reader.h"
#include "store/rocks/rocks_store.h"
#include "support/core_harness.h"

namespace nowcalls::backup {

class FormatReader : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& entity) override {
    if (const auto* found = ledger::As<ledger::Format>(entity)) format = *found;
    if (const auto* found = ledger::As<ledger::ClockMark>(entity)) mark = *found;
    if (const auto* found = ledger::As<ledger::Seal>(entity)) seal = *found;
    return {};
  }

  ledger::Format format;
  std::optional<ledger::ClockMark> mark;
  std::optional<ledger::Seal> seal;
};

inline FormatReader ReadMeta(const std::string& data_dir) {
  const auto store = store::LedgerReader::Open(data_dir);
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  FormatReader reader;
  REQUIRE((*store)->Load(&reader).ok());
  return reader;
}

class ServedLedger {
 public:
  explicit ServedLedger(const std::string& data_dir) {
    auto opened = store::RocksStore::Open(data_dir, {.durability = store::Durability::kNone,
                                                     .write_buffer_bytes = 64 * 1024,
                                                     .on_background_error = nullptr});
    REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
    store = *std::move(opened);
    FormatReader reader;
    REQUIRE(store->Load(&reader).ok());
    core::CoreOptions options = testing::HarnessOptions();
    options.token_id_key = reader.format.token_id_key;
    core = std::make_unique<core::Core>(options);
    const Status loaded = testing::LoadCore(store.get(), now, core.get());
    REQUIRE_MESSAGE(loaded.ok(), loaded.ToString());
    REQUIRE(store->Accept().ok());
  }

  void Rules() {
    REQUIRE(testing::ReplaceRules(core.get(), {now, &batch}, "app",
                                  testing::RulesJson({{.flow = 1, .count = 100'000}}))
                .ok());
    Commit();
  }

  // Grants so many tokens to `client`; their fences.
  std::vector<uint64_t> Take(const std::string& client, int count) {
    const auto hello = core->Hello({now, &batch}, {"app", client, "@127.0.0.1:1"});
    REQUIRE(hello.ok());
    std::vector<uint64_t> fences;
    for (int i = 0; i < count; ++i) {
      const auto answer =
          core->Acquire({now, &batch}, hello->session, {.flow = FlowId{1}, .count = 1}, {});
      REQUIRE(answer.has_value());
      REQUIRE(answer->status == TokenStatus::kOk);
      fences.push_back(answer->fence.value);
      if (i % 64 == 0) Commit();
    }
    Commit();
    return fences;
  }

  void Commit() {
    if (batch.empty()) return;
    core->Seal({now, &batch}, {.boottime_ms = now.ms, .wall_ms = now.ms, .boot_id = {1}}, false);
    const Status committed = store->Commit(batch);
    REQUIRE_MESSAGE(committed.ok(), committed.ToString());
    batch.Clear();
    now = now + 1;
  }

  Instant now{1'700'000'000'000};
  std::unique_ptr<store::RocksStore> store;
  std::unique_ptr<core::Core> core;
  ledger::CommitBatch batch;
};

}  // namespace nowcalls::backup

#endif  // NOWCALLS_UNIT_BACKUP_SERVED_LEDGER_H_
