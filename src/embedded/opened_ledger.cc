#include "embedded/opened_ledger.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "core/options.h"
#include "ledger/clock.h"
#include "ledger/entities.h"
#include "store/disk/ledger_lock.h"
#include "store/memory_store.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::embedded {
namespace {

Status Recover(store::Store* store, const core::CoreOptions& core, OpenedLedger* ledger) {
  Result<recovery::RecoveredLedger> recovered = recovery::Recover(store, core);
  if (!recovered.ok()) return recovered.status();
  ledger->recovered = *std::move(recovered);
  ledger->clock.emplace(*ledger->recovered);
  return Status::Ok();
}

void NoteRecovered(OpenedLedger* ledger) {
  const recovery::RecoveredLedger& recovered = *ledger->recovered;
  if (recovered.format.version < ledger::kFormatVersion) {
    ledger->notes.push_back("the ledger gets format version " +
                            std::to_string(ledger::kFormatVersion) +
                            " now: older versions of nowcalls do not open it any more");
  }
  if (!recovered.future.empty()) ledger->notes.push_back(recovered.future);
  if (recovered.time && recovered.time->clamped) {
    ledger->notes.push_back(
        "the machine was started anew and its wall clock differs by " +
        std::to_string(recovered.time->wall_gap_ms) +
        " ms from the last mark in the ledger; of that, " +
        std::to_string(recovered.time->wall_gap_ms < 0 ? 0 : ledger::kRebootGapMsMax) +
        " ms are counted");
  }
}

Status OpenInMemory(const core::CoreOptions& core, OpenedLedger* ledger) {
  const std::array<uint64_t, 2> key = RandomBits128();
  auto store = std::make_unique<store::MemoryStore>(ledger::Format{.token_id_key = key});
  NOWCALLS_RETURN_IF_ERROR(Recover(store.get(), core, ledger));
  ledger->store = std::move(store);
  ledger->close = [] { return Status::Ok(); };
  return Status::Ok();
}

Status OpenOnDisk(bool sync, const core::CoreOptions& core, OpenedLedger* ledger) {
  NOWCALLS_RETURN_IF_ERROR(SampleClocks().status());  // Before a ledger is formatted.
  // 1. The lock: no other process has the ledger.
  auto lock = store::LedgerLock::Take(ledger->data_dir);
  if (!lock.ok()) return lock.status();
  store::RocksStoreOptions options;
  options.durability = sync ? store::Durability::kSync : store::Durability::kNone;
  options.nearly_full_bytes = core.limits.disk_free_high();
  options.on_background_error = [failure = ledger->failure](const Status& what) {
    failure->Set(what);
  };
  // 2. Open, or format a new ledger.
  auto store = store::RocksStore::Open(*std::move(lock), options);
  if (!store.ok()) return store.status();
  // 3. Recover and prove. A failure leaves the directory as it was.
  const Status recovered = Recover(store->get(), core, ledger);
  if (recovered.code() == StatusCode::kCorruption) {
    return Status::Corruption(recovered.message() + "; `nowcalls-admin verify --data-dir " +
                              ledger->data_dir + "` lists all that is wrong");
  }
  NOWCALLS_RETURN_IF_ERROR(recovered);
  // 4. Proved: only now may the store change an older ledger.
  NOWCALLS_RETURN_IF_ERROR((*store)->Accept());
  ledger->notes = (*store)->notes();
  NoteRecovered(ledger);
  ledger->close = [rocks = store->get()] { return rocks->Close(); };
  ledger->store = *std::move(store);
  return Status::Ok();
}

}  // namespace

void StoreFailure::Set(const Status& what) {
  const std::lock_guard lock(mutex_);
  if (!what_) what_ = what;
}

std::optional<Status> StoreFailure::Get() const {
  const std::lock_guard lock(mutex_);
  return what_;
}

Result<OpenedLedger> OpenLedger(const EmbeddedOptions& options, const Limits& limits) {
  core::CoreOptions core;
  core.limits = limits;
  core.expire_strategy = options.expire_strategy;
  core.resource_timeout_factor = options.resource_timeout_factor;
  OpenedLedger ledger;
  if (options.data_dir.empty()) {
    NOWCALLS_RETURN_IF_ERROR(OpenInMemory(core, &ledger));
    return ledger;
  }
  // Absolute: the program may change its directory.
  std::error_code error;
  ledger.data_dir = std::filesystem::absolute(options.data_dir, error).lexically_normal().string();
  if (error) return Status::IoError("find " + options.data_dir + ": " + error.message());
  NOWCALLS_RETURN_IF_ERROR(OpenOnDisk(options.sync, core, &ledger));
  return ledger;
}

}  // namespace nowcalls::embedded
