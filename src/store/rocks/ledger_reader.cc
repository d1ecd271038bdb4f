#include "store/rocks/ledger_reader.h"

#include <rocksdb/env.h>

#include <utility>

#include "base/last_words.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/log/log_views.h"
#include "store/rocks/batch_proof.h"
#include "store/rocks/database.h"
#include "store/rocks/frozen_files.h"
#include "store/rocks/ledger_copy.h"
#include "store/rocks/ledger_env.h"
#include "store/rocks/ledger_load.h"
#include "store/rocks/rocks_options.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::store {
namespace {

constexpr int kAttemptsMax = 10;

}  // namespace

struct LedgerReader::Impl {
  Impl(const std::string& ledger_dir, ReadMode read_mode)
      : mode(read_mode), database(ledger_dir, RocksStoreOptions().write_buffer_bytes) {}

  // Opens the ledger in `mode`, with all checks. kNotFound: never finished.
  Status Open();

  const ReadMode mode;
  Database database;
  std::vector<std::string> notes;
};

Status LedgerReader::Impl::Open() {
  const std::string& dir = database.dir();
  std::shared_ptr<rocksdb::FileSystem> shown = rocksdb::FileSystem::Default();
  if (mode == ReadMode::kBesideServer) {
    const Result<std::shared_ptr<FrozenFiles>> frozen = FrozenFiles::Take(dir);
    if (!frozen.ok()) return frozen.status();
    shown = *frozen;
  }
  // Before RocksDB looks: is there a log, and where do logs end?
  NOWCALLS_RETURN_IF_ERROR(CheckLogPresent(shown.get(), dir));
  BatchProof proof(dir);
  NOWCALLS_RETURN_IF_ERROR(proof.Prepare(shown.get()));
  const auto views = std::make_shared<LogViews>(shown, LogViews::State::kAtRest);
  views->Hide(proof.hidden());
  database.SetFailedRead([shown = views.get()] { return shown->FailedRead(); });
  // RocksDB replays the shown logs into memory.
  std::unique_ptr<rocksdb::Env> env = std::make_unique<LedgerEnv>(rocksdb::NewCompositeEnv(views));
  rocksdb::DBOptions options = ReaderDbOptions();
  options.env = env.get();
  std::vector<std::string> names;
  NOWCALLS_RETURN_IF_ERROR(ListFamilies(options, dir, &names));
  const StoreError opened = database.Open(Database::Access::kRead, options, std::move(env), names,
                                          "open the ledger for reading");
  views->EndReading();
  NOWCALLS_RETURN_IF_ERROR(opened);
  // A whole ledger, or one never finished.
  const Result<uint32_t> version = database.FormatVersion();
  if (!version.ok()) return version.status();
  if (*version == 0) {
    return Status::NotFound("the ledger in " + dir +
                            " was never finished: start the server once to finish it");
  }
  NOWCALLS_RETURN_IF_ERROR(database.CheckAllRead());
  NOWCALLS_RETURN_IF_ERROR(database.CheckFamilies(*version));
  NOWCALLS_RETURN_IF_ERROR(proof.Check(database, *views));
  notes = proof.notes();
  return {};
}

LedgerReader::LedgerReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LedgerReader::~LedgerReader() = default;

Result<std::unique_ptr<LedgerReader>> LedgerReader::Open(const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckDataDir(data_dir));
  const AssertionsMeanDamage reading;
  const std::string dir = LedgerDir(data_dir);
  // The mode follows the holder of the moment; a server that comes or goes disturbs the open.
  for (int attempt = 1;; ++attempt) {
    NOWCALLS_RETURN_IF_ERROR(CheckLedgerPresent(dir));
    const Result<LedgerHolder> holder = FindLedgerHolder(data_dir);
    if (!holder.ok()) return holder.status();
    const bool is_held = holder->pid != 0;
    const std::string before = ManifestState(dir);
    auto impl = std::make_unique<Impl>(dir, is_held ? ReadMode::kBesideServer : ReadMode::kAtRest);
    const Status opened = impl->Open();
    // A server that started meanwhile may have deleted files under the open.
    bool is_disturbed = !is_held && ManifestState(dir) != before;
    if (!is_held && !is_disturbed && !opened.ok()) {
      const Result<LedgerHolder> now = FindLedgerHolder(data_dir);
      is_disturbed = now.ok() && now->pid != 0;
    }
    if (is_disturbed && attempt < kAttemptsMax) continue;
    if (!opened.ok()) return opened;
    if (IsBackupWithoutManifest(data_dir)) {
      impl->notes.push_back(CheckNoBackup(data_dir).message());
    }
    return std::unique_ptr<LedgerReader>(new LedgerReader(std::move(impl)));
  }
}

Result<std::unique_ptr<LedgerReader>> LedgerReader::Open(const LedgerLock& lock) {
  const AssertionsMeanDamage reading;
  NOWCALLS_RETURN_IF_ERROR(CheckLedgerPresent(lock.ledger_dir()));
  auto impl = std::make_unique<Impl>(lock.ledger_dir(), ReadMode::kAtRest);
  NOWCALLS_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<LedgerReader>(new LedgerReader(std::move(impl)));
}

ReadMode LedgerReader::mode() const { return impl_->mode; }
const std::vector<std::string>& LedgerReader::notes() const { return impl_->notes; }

Status LedgerReader::Load(ledger::EntityVisitor* visitor) {
  return LoadLedger(impl_->database, LoadFrom::kBeginning, visitor);
}

Result<std::vector<CopiedFile>> LedgerReader::CopyTo(const std::string& to,
                                                     const std::atomic<bool>& stop) const {
  if (impl_->mode != ReadMode::kAtRest) {
    return Status::FailedPrecondition("the ledger in " + impl_->database.dir() +
                                      " is open in a server: ask that for the backup");
  }
  return LedgerCopy(impl_->database, LedgerCopy::Source::kAtRest, 0, to, &stop).Make();
}

}  // namespace nowcalls::store
