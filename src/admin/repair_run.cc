// repair: the steps on disk, from a refused ledger to a new one.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "admin/repair.h"
#include "base/os_error.h"
#include "store/disk/data_dir.h"
#include "store/disk/file_copy.h"
#include "store/disk/ledger_files.h"
#include "store/disk/ledger_read_lock.h"
#include "store/rocks/rocks_store.h"
#include "store/salvage/salvage.h"

namespace nowcalls::admin {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kRecordsPerBatch = 4096;
constexpr size_t kBatchBytes = 2 * 1024 * 1024;

// Commits records in batches that are sealed over the tokens so far.
class Writer {
 public:
  Writer(const SalvagedEntities& salvaged, store::RocksStore* store) : store_(*store) {
    seal_.next_fence = salvaged.next_fence;
    seal_.ledger_ms = salvaged.mark.ledger_ms;
    batch_.ClockMarked(salvaged.mark);
  }

  ledger::CommitBatch& batch() { return batch_; }
  void Count(const ledger::Token& token) {
    ++seal_.live_tokens;
    seal_.live_count_sum += token.count;
    seal_.live_fence_sum += token.fence.value;
  }
  Status CommitIfFull() {
    const bool full = batch_.records() >= kRecordsPerBatch || batch_.bytes().size() >= kBatchBytes;
    return full ? Commit() : Status::Ok();
  }
  Status Commit() {
    ++seal_.batch_number;
    batch_.Sealed(seal_);
    NOWCALLS_RETURN_IF_ERROR(store_.Commit(batch_));
    batch_.Clear();
    return {};
  }

 private:
  store::RocksStore& store_;
  ledger::CommitBatch batch_;
  ledger::Seal seal_;
};

Status CommitAll(const SalvagedEntities& salvaged, store::RocksStore* store) {
  // In the order of what refers to what: tokens come last, behind their rules and sessions.
  Writer writer(salvaged, store);
  for (const ledger::NamespaceEntry& entry : salvaged.namespaces) {
    writer.batch().NamespaceSet(entry);
  }
  for (auto rule = salvaged.rules.begin(); rule != salvaged.rules.end(); ++rule) {
    // The rule by value comes behind that of the flow, whose record it shares in one namespace.
    const auto next = std::next(rule);
    const bool shares = next != salvaged.rules.end() && next->first.id == rule->first.id &&
                        next->second.name_space == rule->second.name_space;
    writer.batch().RuleSet(rule->second, shares ? &next->second : nullptr);
    if (shares) rule = next;
    NOWCALLS_RETURN_IF_ERROR(writer.CommitIfFull());
  }
  for (const auto& [id, session] : salvaged.sessions) {
    writer.batch().SessionOpened(session);
    NOWCALLS_RETURN_IF_ERROR(writer.CommitIfFull());
  }
  std::span<const ledger::HistoryEntry> history = salvaged.history;
  while (!history.empty()) {
    const auto block = history.first(std::min(history.size(), ledger::kHistoryBlockMax));
    writer.batch().HistoryAdded(block);
    NOWCALLS_RETURN_IF_ERROR(writer.CommitIfFull());
    history = history.subspan(block.size());
  }
  for (const auto& [key, bucket] : salvaged.rates) {
    writer.batch().RateSet(bucket);
    NOWCALLS_RETURN_IF_ERROR(writer.CommitIfFull());
  }
  for (const auto& [fence, token] : salvaged.tokens) {
    writer.batch().TokenIssued(token);
    writer.Count(token);
    NOWCALLS_RETURN_IF_ERROR(writer.CommitIfFull());
  }
  return writer.Commit();
}

// Made beside the target, and renamed to it when all is done. Half a ledger is one directory
// further down, so that nobody takes it for a whole one, or makes an empty one beside it. What a
// repair that was cut short has left there is removed.
class Workplace {
 public:
  explicit Workplace(const std::string& to) : to_(fs::absolute(to).lexically_normal()) {
    if (to_.filename().empty()) to_ = to_.parent_path();
  }
  ~Workplace() {
    std::error_code ignored;
    if (made_) fs::remove_all(path(), ignored);
    if (lock_ >= 0) close(lock_);
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  std::string path() const { return to_.string() + ".partial"; }
  std::string work() const { return path() + "/" + store::kRepairingName; }
  std::string scratch() const { return work() + "/scratch"; }

  Status Make() {
    std::error_code error;
    if (fs::exists(fs::symlink_status(to_, error))) {
      // A repair that was cut off before its last step leaves a target without a ledger.
      NOWCALLS_RETURN_IF_ERROR(store::CheckNoneBegun(to_.string()).WithContext("--to"));
      return Status::AlreadyExists("--to: " + to_.string() +
                                   " exists: name a directory that does not");
    }
    // Happy path: remove what a dead repair left, make the directory, lock it, work in one below
    // it.
    NOWCALLS_RETURN_IF_ERROR(RemoveLeftOver());
    made_ = fs::create_directory(path(), error);
    if (error) return store::CannotMakeDirectory(path(), error.value());
    // It came into being since RemoveLeftOver looked: another repair is at work.
    if (!made_) return InTheWay("another repair to it runs: wait until it has ended");
    // The lock keeps two repairs apart. A second one is refused, and does not wait.
    NOWCALLS_RETURN_IF_ERROR(Lock());
    fs::permissions(path(), fs::perms::owner_all, error);
    if (fs::create_directory(work(), error)) return {};
    return store::CannotMakeDirectory(work(), error.value());
  }

  Status Finish() {
    std::error_code error;
    // The order: sync the files' directories, rename to the target, sync its parent, and only then
    // give the ledger its name.
    fs::remove_all(scratch(), error);
    if (error) return Status::IoError("cannot remove " + scratch() + ": " + error.message());
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(work()));
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(path()));
    fs::rename(path(), to_, error);
    if (error) return Status::IoError("cannot rename to " + to_.string() + ": " + error.message());
    // From here on the target has the work: the destructor must not remove it.
    made_ = false;
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(to_.parent_path()));
    // The ledger gets its name last: no left-over has one.
    const std::string done = to_ / store::kRepairingName;
    fs::rename(store::LedgerDir(done), store::LedgerDir(to_), error);
    if (error) return Status::IoError(to_.string() + ": " + error.message());
    NOWCALLS_RETURN_IF_ERROR(store::SyncDir(to_));
    fs::remove(done, error);
    return error ? Status::IoError("cannot remove " + done + ": " + error.message()) : Status::Ok();
  }

 private:
  Status InTheWay(const std::string& why) const {
    return Status::AlreadyExists("--to: " + path() + " exists: " + why);
  }

  // The lock goes with the process, however that ends.
  Status Lock() {
    lock_ = open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock_ < 0) return OsError("open", path());
    if (flock(lock_, LOCK_EX | LOCK_NB) == 0) return {};
    return InTheWay("another repair to it runs: wait until it has ended");
  }

  // Removes nothing but what a repair makes.
  Status RemoveLeftOver() {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(path(), error))) return {};
    if (!fs::is_directory(fs::symlink_status(path(), error))) {
      return InTheWay("move it away, or name another directory");
    }
    NOWCALLS_RETURN_IF_ERROR(Lock());
    for (fs::directory_iterator it(path(), error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename();
      if (name == store::kRepairingName) continue;
      return InTheWay("it has " + name +
                      ", which no repair made: move it away, or name another "
                      "directory");
    }
    if (!error) fs::remove_all(path(), error);
    close(std::exchange(lock_, -1));
    if (!error) return {};
    return Status::IoError("cannot remove " + path() +
                           ", which a repair that was cut short left: " + error.message());
  }

  fs::path to_;
  bool made_ = false;
  int lock_ = -1;  // On path().
};

Status CheckSource(const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(store::CheckDataDir(data_dir));
  const Result<bool> there = store::IsThere(store::LedgerDir(data_dir));
  if (!there.ok()) return there.status();
  std::error_code ignored;
  if (!*there || !fs::is_directory(store::LedgerDir(data_dir), ignored)) {
    return Status::NotFound("there is no ledger in " + store::LedgerDir(data_dir));
  }
  // To open a named pipe or a device may take for ever.
  return store::CheckMayAllBeFiles(store::LedgerDir(data_dir));
}

// What can be read. The lock is let go when all of it is.
Status ReadLedger(const std::string& data_dir, const std::string& scratch,
                  store::SalvageReport* report, ReadEntities* read,
                  std::unique_ptr<store::LedgerReadLock> lock) {
  const auto opened = store::OpenSalvaged(data_dir, scratch, report);
  // Files that vanished or changed under a server are no damage.
  const Status alone = lock->CheckNobodyCame();
  if (!alone.ok()) return Status::IoError(alone.message());
  // The copy is complete: a server may start meanwhile.
  lock.reset();
  Status status = opened.status();
  if (status.ok()) status = (*opened)->Load(read);
  return status;
}

// Not a ledger without tokens: such a one has a format at least. Without that and without rules,
// rates are left out, and the watermark tells of no entity.
bool IsNothing(const ReadEntities& read) {
  return !read.format && !read.mark && !read.seal && read.namespaces.empty() &&
         read.rules.empty() && read.sessions.empty() && read.history.empty() && read.tokens.empty();
}

}  // namespace

Status WriteSalvaged(const SalvagedEntities& salvaged, const std::string& data_dir) {
  store::RocksStoreOptions options;
  options.format = salvaged.format;
  const auto store = store::RocksStore::Open(data_dir, options);
  if (!store.ok()) return store.status();
  NOWCALLS_RETURN_IF_ERROR(CommitAll(salvaged, store->get()));
  return (*store)->Close();
}

Result<RepairSummary> Repair(const std::string& data_dir, const std::string& to) {
  // First all that can be refused without making anything.
  const Status source = CheckSource(data_dir);
  if (source.code() == StatusCode::kIoError) return source;
  if (!source.ok()) return source.WithContext("--data-dir");
  Status elsewhere = store::CheckOutside(to, data_dir, "the data directory that is repaired");
  if (elsewhere.ok()) elsewhere = store::CheckNotWithinBackupOrLedger(to);
  if (!elsewhere.ok()) return elsewhere.WithContext("--to");
  Result<std::unique_ptr<store::LedgerReadLock>> lock = store::LedgerReadLock::Take(data_dir);
  if (!lock.ok()) return Status::IoError(lock.status().message());
  // From here on a failure removes what was made.
  Workplace place(to);
  NOWCALLS_RETURN_IF_ERROR(place.Make());
  const Result<ClockSample> now = SampleClocks();
  if (!now.ok()) return now.status();
  store::SalvageReport report;
  ReadEntities read;
  NOWCALLS_RETURN_IF_ERROR(ReadLedger(data_dir, place.scratch(), &report, &read, *std::move(lock)));
  // A wrong directory or an unmounted volume must not become an empty ledger.
  if (IsNothing(read)) {
    return Status::Corruption(
        "nothing of the ledger in " + store::LedgerDir(data_dir) +
        " can be read: restore it from a backup. Is --data-dir right, and its "
        "volume mounted?");
  }
  const SalvagedEntities salvaged = SalvageEntities(read, *now);
  NOWCALLS_RETURN_IF_ERROR(WriteSalvaged(salvaged, place.work()));
  NOWCALLS_RETURN_IF_ERROR(place.Finish());
  // The new ledger is in place; the rest only tells of it.
  RepairSummary summary;
  summary.lost = std::move(report.lost);
  summary.lost.insert(summary.lost.end(), read.damage.begin(), read.damage.end());
  summary.changes = salvaged.changes;
  summary.seal = read.seal;
  summary.newest_batch = report.newest_batch;
  summary.tokens = salvaged.tokens.size();
  summary.now_calls = salvaged.now_calls();
  summary.fence_sum = salvaged.fence_sum();
  summary.sessions = salvaged.sessions.size();
  summary.rules = salvaged.rules.size();
  summary.history = salvaged.history.size();
  summary.next_fence = salvaged.next_fence;
  return summary;
}

}  // namespace nowcalls::admin
