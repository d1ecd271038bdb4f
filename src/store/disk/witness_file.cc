#include "store/disk/witness_file.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr auto kPause = std::chrono::seconds(1);

IOStatus SyncDirectory(rocksdb::FileSystem* files, const std::string& path) {
  std::unique_ptr<rocksdb::FSDirectory> dir;
  IOStatus status = files->NewDirectory(path, IOOptions(), &dir, nullptr);
  return status.ok() ? dir->Fsync(IOOptions(), nullptr) : status;
}

std::string NextWitnessPath(const std::string& ledger_dir) {
  return WitnessPath(ledger_dir) + ".new";
}

// One unreadable slot must not hide the other: each slot is read on its own.
IOStatus ReadSlots(rocksdb::FileSystem* files, const std::string& path, std::string* bytes) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status = files->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  bytes->clear();
  size_t unreadable = 0;
  for (size_t i = 0; i < ledger::kWitnessSlots; ++i) {
    std::vector<char> buffer(ledger::kWitnessSlotStride);
    const uint64_t begin = i * ledger::kWitnessSlotStride;
    rocksdb::Slice slot;
    const IOStatus read =
        file->Read(begin, buffer.size(), IOOptions(), &slot, buffer.data(), nullptr);
    if (!read.ok()) {
      status = read;
      ++unreadable;
      continue;
    }
    bytes->resize(begin);  // Zeros for a place that cannot be read.
    bytes->append(slot.data(), slot.size());
  }
  return unreadable == ledger::kWitnessSlots ? status : IOStatus::OK();
}

// The witness of a start that ended between naming its manifest in CURRENT and replacing the old
// witness; else nullopt. `before`: bytes of the old witness, if any.
std::optional<std::string> OfCutOffStart(rocksdb::FileSystem* files, const std::string& ledger_dir,
                                         const std::optional<std::string>& before) {
  std::string next;
  if (!ReadSlots(files, NextWitnessPath(ledger_dir), &next).ok()) return std::nullopt;
  std::string current;
  const bool is_read = ReadCurrent(files, ledger_dir, &current).ok();
  // It counts only for the manifest that CURRENT names, and only if it is newer than the old
  // witness.
  const uint64_t manifest = is_read ? ManifestNumber(current) : 0;
  const auto of_start = ledger::DecodeWitnessFile(next).witness;
  if (manifest == 0 || !of_start.has_value() || of_start->manifest != manifest) return std::nullopt;
  if (before.has_value()) {
    const auto known = ledger::DecodeWitnessFile(*before).witness;
    if (!known.has_value() || known->manifest >= manifest) return std::nullopt;
  }
  return next;
}

// NotFound: neither exists.
IOStatus ReadBoth(rocksdb::FileSystem* files, const std::string& ledger_dir,
                  std::optional<std::string>* witness, std::optional<std::string>* of_cut_off) {
  witness->emplace();
  IOStatus status = ReadSlots(files, WitnessPath(ledger_dir), &**witness);
  if (!status.ok()) witness->reset();
  if (!status.ok() && !IsAbsent(status)) return status;
  *of_cut_off = OfCutOffStart(files, ledger_dir, *witness);
  return of_cut_off->has_value() ? IOStatus::OK() : status;
}

}  // namespace

std::string WitnessPath(const std::string& ledger_dir) {
  return ledger_dir + "/" + std::string(ledger::kWitnessName);
}

IOStatus ReadWitnessBytes(rocksdb::FileSystem* files, const std::string& ledger_dir,
                          std::string* bytes) {
  std::optional<std::string> witness;
  std::optional<std::string> of_cut_off;
  IOStatus status = ReadBoth(files, ledger_dir, &witness, &of_cut_off);
  if (status.ok()) *bytes = of_cut_off.has_value() ? *std::move(of_cut_off) : *std::move(witness);
  return status;
}

IOStatus ReadWitness(rocksdb::FileSystem* files, const std::string& ledger_dir,
                     std::optional<ledger::WitnessFound>* found) {
  found->reset();
  std::string bytes;
  const IOStatus status = ReadWitnessBytes(files, ledger_dir, &bytes);
  if (status.ok()) *found = ledger::DecodeWitnessFile(bytes);
  return IsAbsent(status) ? IOStatus::OK() : status;
}

WitnessFile::WitnessFile(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock,
                         Report report)
    : files_(std::move(files)), lock_(lock), report_(std::move(report)) {}

WitnessFile::~WitnessFile() { Stop(); }

void WitnessFile::SetLogs(uint64_t first_log, bool unsynced) {
  const std::lock_guard lock(mutex_);
  now_.first_log = first_log;
  now_.unsynced = unsynced;
}

// Order of a start: Prepare, sync of the directory, CURRENT, Begin. A kill between any two leaves a
// manifest and a witness that fit: the old pair, or the new manifest with `witness.new`.
IOStatus WitnessFile::Prepare(uint64_t batch_number) {
  {
    const std::lock_guard lock(mutex_);
    now_.batch_number = batch_number;
    now_.floor = batch_number;
  }
  const std::lock_guard writing(write_mutex_);
  IOStatus status = PutAside();
  if (!status.ok()) return status;
  status = Make();
  if (!status.ok()) Withdraw();
  return status;
}

// An existing `witness.new` may count (OfCutOffStart). It becomes the witness before it is
// overwritten.
IOStatus WitnessFile::PutAside() {
  const std::string& dir = lock_->ledger_dir();
  std::optional<std::string> witness;
  std::optional<std::string> of_cut_off;
  IOStatus status = ReadBoth(files_.get(), dir, &witness, &of_cut_off);
  if (!of_cut_off.has_value()) return IsAbsent(status) ? IOStatus::OK() : status;
  status = files_->RenameFile(NextWitnessPath(dir), WitnessPath(dir), IOOptions(), nullptr);
  return status.ok() ? SyncDirectory(files_.get(), dir) : status;
}

void WitnessFile::Withdraw() {
  const std::string path = NextWitnessPath(lock_->ledger_dir());
  if (!files_->FileExists(path, IOOptions(), nullptr).ok()) return;
  files_->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

IOStatus WitnessFile::Begin() {
  {
    const std::lock_guard writing(write_mutex_);
    IOStatus status = Replace();
    if (!status.ok()) return status;
  }
  const std::lock_guard lock(mutex_);
  floor_written_ = now_.floor;
  first_log_written_ = now_.first_log;
  unsynced_written_ = now_.unsynced;
  begun_ = true;
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "nc-witness");
  return IOStatus::OK();
}

IOStatus WitnessFile::Make() {
  ledger::Witness witness;
  {
    const std::lock_guard lock(mutex_);
    witness = now_;
    written_ = written_before_ = now_.batch_number;
  }
  // Both slots from the start, so that one damaged slot costs nothing.
  std::string bytes(ledger::kWitnessFileBytes, '\0');
  for (size_t i = 0; i < ledger::kWitnessSlots; ++i) {
    witness.sequence = ++sequence_;
    const std::string slot = ledger::EncodeWitnessSlot(witness);
    bytes.replace(sequence_ % ledger::kWitnessSlots * ledger::kWitnessSlotStride, slot.size(),
                  slot);
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(NextWitnessPath(lock_->ledger_dir()),
                                            rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = file->Append(bytes, IOOptions(), nullptr);
  if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  if (status.ok()) status = file->Close(IOOptions(), nullptr);
  return status;
}

IOStatus WitnessFile::Replace() {
  const std::string path = WitnessPath(lock_->ledger_dir());
  IOStatus status =
      files_->RenameFile(NextWitnessPath(lock_->ledger_dir()), path, IOOptions(), nullptr);
  if (status.ok()) status = SyncDirectory(files_.get(), lock_->ledger_dir());
  if (status.ok()) status = files_->NewRandomRWFile(path, rocksdb::FileOptions(), &file_, nullptr);
  return status;
}

IOStatus WitnessFile::EndUnsynced() {
  {
    const std::lock_guard lock(mutex_);
    now_.unsynced = false;
  }
  return RaiseFloor(0);
}

void WitnessFile::SetManifest(uint64_t number, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  now_.manifest = number;
  now_.manifest_bytes = bytes;
}

void WitnessFile::Advance(uint64_t batch_number) {
  bool idle = false;
  {
    const std::lock_guard lock(mutex_);
    idle = !Due();
    now_.batch_number = std::max(now_.batch_number, batch_number);
  }
  if (idle) changed_.notify_all();
}

IOStatus WitnessFile::RaiseFloor(uint64_t batch_number, uint64_t first_log) {
  bool unsynced = false;
  {
    const std::lock_guard lock(mutex_);
    // now_.floor does not tell: another thread may still be writing it, and log deletions must wait
    // for that write.
    unsynced = now_.unsynced;
    const bool written = batch_number <= floor_written_ && first_log <= first_log_written_ &&
                         unsynced == unsynced_written_;
    if (!begun_ || written) return IOStatus::OK();
    now_.floor = std::max(now_.floor, batch_number);
    now_.first_log = std::max(now_.first_log, first_log);
    now_.batch_number = std::max(now_.batch_number, batch_number);
  }
  // Both slots must have the floor, whichever is damaged later.
  for (size_t i = 0; i < ledger::kWitnessSlots; ++i) {
    IOStatus status = WriteSlot();
    if (!status.ok()) return status;
  }
  {
    const std::lock_guard lock(mutex_);
    floor_written_ = std::max(floor_written_, batch_number);
    first_log_written_ = std::max(first_log_written_, first_log);
    unsynced_written_ = unsynced;
  }
  // Advance woke nobody meanwhile: it took the thread for awake.
  changed_.notify_all();
  return IOStatus::OK();
}

IOStatus WitnessFile::WriteSlot() {
  IOStatus status;
  {
    const std::lock_guard writing(write_mutex_);
    // After a failed write or sync the file's state is unknown: nothing is written again.
    if (failed_) return IOStatus::IOError("the witness could not be written before");
    ledger::Witness witness;
    {
      const std::lock_guard lock(mutex_);
      // Snapshot under mutex_, write under write_mutex_ only: Advance never waits for the disk.
      witness = now_;
      written_before_ = std::exchange(written_, now_.batch_number);
    }
    witness.sequence = ++sequence_;
    const uint64_t at = sequence_ % ledger::kWitnessSlots * ledger::kWitnessSlotStride;
    status = file_->Write(at, ledger::EncodeWitnessSlot(witness), IOOptions(), nullptr);
    if (status.ok()) status = file_->Sync(IOOptions(), nullptr);
    failed_ = !status.ok();
  }
  if (!status.ok() && report_) report_(status);
  return status;
}

void WitnessFile::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || Due(); });
    if (stop_) return;
    lock.unlock();
    const bool written = WriteSlot().ok();
    lock.lock();
    // At most one write a second; then once more if a slot lacks the news.
    if (!written || changed_.wait_for(lock, kPause, [this] { return stop_; })) return;
  }
}

void WitnessFile::Stop() {
  bool begun = false;
  {
    const std::lock_guard lock(mutex_);
    begun = std::exchange(begun_, false);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // No other thread is left; both slots get the last batch.
  while (begun && Due() && WriteSlot().ok()) {
  }
  file_.reset();
}

}  // namespace nowcalls::store
