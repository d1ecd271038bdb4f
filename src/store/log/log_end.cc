#include "store/log/log_end.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "store/disk/file_names.h"
#include "store/log/log_scan.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Findings in one log.
struct Look {
  uint64_t number = 0;
  std::string path;
  uint64_t end = 0;  // Behind its last record.
  LogScan::Rest rest = LogScan::Rest::kNothing;
  uint64_t content_end = 0;
  BatchRun batches;
  std::optional<uint64_t> sequence;  // The greatest up to `end`.

  bool HasContent() const { return content_end > 0; }
};

// The numbers of the logs from `first` on, ascending.
IOStatus ListLogs(rocksdb::FileSystem* files, const std::string& dir, uint64_t first,
                  std::vector<Look>* logs) {
  std::vector<std::string> names;
  IOStatus status = files->GetChildren(dir, IOOptions(), &names, nullptr);
  for (const std::string& name : names) {
    const uint64_t number = LogNumber(name);
    if (number == 0 || number < first) continue;
    Look look;
    look.number = number;
    look.path = dir + "/" + name;
    std::error_code ignored;
    // A directory is no log, whatever its name.
    if (std::filesystem::is_directory(look.path, ignored)) continue;
    logs->push_back(std::move(look));
  }
  std::sort(logs->begin(), logs->end(),
            [](const Look& a, const Look& b) { return a.number < b.number; });
  return status;
}

// Head of a record (RocksDB's write_batch.cc), little-endian: the sequence number of the first
// change, and the number of changes, each with the next number.
std::optional<uint64_t> LastSequenceIn(std::string_view record) {
  constexpr size_t kSequenceBytes = 8;
  constexpr size_t kHeadBytes = 12;
  if (record.size() < kHeadBytes) return {};
  const auto number = [&](size_t from, size_t to) {
    uint64_t value = 0;
    for (size_t at = to; at > from; --at) value = value << 8 | static_cast<uint8_t>(record[at - 1]);
    return value;
  };
  return number(0, kSequenceBytes) + number(kSequenceBytes, kHeadBytes) - 1;
}

IOStatus LookAt(rocksdb::FileSystem* files, Look* look) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status = files->NewRandomAccessFile(look->path, rocksdb::FileOptions(), &file, nullptr);
  if (!status.ok()) return status;
  LogScan scan(file.get(), LogScan::Kind::kLog);
  status = scan.Advance();
  uint64_t size = 0;
  if (status.ok()) status = files->GetFileSize(look->path, IOOptions(), &size, nullptr);
  if (status.ok()) status = scan.LookBehind(size, &look->rest, &look->content_end);
  look->end = scan.end();
  look->batches = scan.batches();
  if (!status.ok() || look->end == 0) return status;
  LogScan::Record last;
  bool found = false;
  status = scan.NextRecord(scan.last_begin(), look->end, &last, &found);
  if (found) look->sequence = LastSequenceIn(last.bytes);
  return status;
}

// Looks at all logs from `first` on.
IOStatus LookAtLogs(rocksdb::FileSystem* files, const std::string& dir, uint64_t first,
                    std::vector<Look>* logs) {
  IOStatus status = ListLogs(files, dir, first, logs);
  for (Look& log : *logs) {
    if (status.ok()) status = LookAt(files, &log);
  }
  return status;
}

// The ledger ends with `batch`: behind the last record of logs[count - 1], before logs[count].
void EndBehind(const std::vector<Look>& logs, size_t count, uint64_t batch, LogEnd* end) {
  end->early = true;
  end->batch = batch;
  uint64_t found = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const Look& log = logs[i];
    if (i < count) {
      if (log.sequence.has_value()) end->sequence = log.sequence;
      end->hidden.tail_of = log.number;
      end->place = "at byte " + std::to_string(log.end) + " of " + log.path;
    } else if (log.HasContent()) {
      // Logs behind the end are hidden whole, or their batches would come back after lost ones.
      end->hidden.whole.insert(log.number);
      if (!log.batches.empty) found = std::max(found, log.batches.last);
    }
  }
  if (count == 0) end->place = "before " + logs[0].path;
  if (found > 0) {
    end->place += "; of what followed, some was found up to batch " + std::to_string(found);
  }
}

}  // namespace

IOStatus FindLogEnd(rocksdb::FileSystem* files, const std::string& ledger_dir,
                    const ledger::Witness& witness, std::optional<uint64_t> floor, LogEnd* end) {
  *end = {};
  end->hidden.below = witness.first_log;
  // Synced ledgers end with their logs; log_views.h handles the torn last write.
  if (!witness.unsynced) return IOStatus::OK();
  std::vector<Look> logs;
  IOStatus status = LookAtLogs(files, ledger_dir, witness.first_log, &logs);
  if (!status.ok()) return status;
  // Number of logs up to the newest with content. Logs of zeros are spares that RocksDB began.
  size_t content = logs.size();
  while (content > 0 && !logs[content - 1].HasContent()) --content;
  // All batches up to `last` exist. The ledger may end early only beyond what the witness saw on
  // disk.
  std::optional<uint64_t> last = floor;
  const auto may_end = [&] { return last.has_value() && *last >= witness.batch_number; };
  std::optional<uint64_t> logged;
  for (size_t i = 0; i < content; ++i) {
    const Look& log = logs[i];
    // Step 1: the log must go on where the previous one ended.
    if (!log.batches.empty) {
      // No crash leaves numbers out of order: damage, which CheckChain reports.
      if (log.batches.broken.has_value()) return status;
      if (logged.has_value() && log.batches.first <= *logged) return status;
      if (last.has_value() && log.batches.first > *last + 1) {
        if (may_end()) EndBehind(logs, i, *last, end);
        return status;
      }
      logged = log.batches.last;
      last = std::max(last.value_or(0), log.batches.last);
    }
    // Step 2: the log must be whole to its end. A killed process leaves a cut last record, too; it
    // was not answered.
    const bool cut_short = log.rest == LogScan::Rest::kCutShort && i + 1 == content;
    if (log.rest == LogScan::Rest::kNothing || cut_short) continue;
    if (may_end()) EndBehind(logs, i + 1, *last, end);
    return status;
  }
  return status;
}

IOStatus SyncLogs(rocksdb::FileSystem* files, const std::string& ledger_dir) {
  std::vector<Look> logs;
  IOStatus status = ListLogs(files, ledger_dir, 0, &logs);
  for (const Look& log : logs) {
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    if (status.ok()) {
      status = files->NewRandomRWFile(log.path, rocksdb::FileOptions(), &file, nullptr);
    }
    if (status.ok()) status = file->Sync(IOOptions(), nullptr);
    if (status.ok()) status = file->Close(IOOptions(), nullptr);
  }
  return status;
}

}  // namespace nowcalls::store
