#include "store/opening_mark.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "store/ledger_files.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr std::string_view kHead = "nowcalls opening 1\n";

bool IsAbsent(const IOStatus& status) { return status.IsNotFound() || status.IsPathNotFound(); }

// Nothing: they are no number.
std::optional<uint64_t> Number(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::string MarkText(std::string_view ledger, uint64_t greatest) {
  std::string text(kHead);
  text.append(ledger).append(std::to_string(greatest)).append("\n");
  return text + std::to_string(Crc32c(text)) + "\n";
}

// What MarkText was given; nothing when `text` is not of it, or of another ledger.
std::optional<uint64_t> GreatestOf(std::string_view text, std::string_view ledger) {
  std::string_view rest = text;
  if (!rest.starts_with(kHead)) return std::nullopt;
  rest.remove_prefix(kHead.size());
  if (!rest.starts_with(ledger)) return std::nullopt;
  rest.remove_prefix(ledger.size());
  const std::optional<uint64_t> greatest = Number(rest.substr(0, rest.find('\n')));
  if (!greatest.has_value() || text != MarkText(ledger, *greatest)) return std::nullopt;
  return greatest;
}

}  // namespace

uint64_t MadeFileNumber(std::string_view name) {
  const auto take = [](std::string_view* text, std::string_view what, bool at_end) {
    if (at_end ? !text->ends_with(what) : !text->starts_with(what)) return false;
    at_end ? text->remove_suffix(what.size()) : text->remove_prefix(what.size());
    return true;
  };
  bool known = take(&name, ".dbtmp", true);
  if (take(&name, "MANIFEST-", false) || take(&name, "OPTIONS-", false)) {
    known = true;
  } else {
    known = known || take(&name, ".sst", true) || take(&name, ".log", true);
  }
  return known ? Number(name).value_or(0) : 0;
}

OpeningMark::OpeningMark(std::shared_ptr<rocksdb::FileSystem> files, std::string ledger_dir)
    : files_(std::move(files)), dir_(std::move(ledger_dir)), path_(dir_ + "/opening") {}

IOStatus OpeningMark::Begin() {
  std::vector<std::string> names;
  IOStatus status = files_->GetChildren(dir_, IOOptions(), &names, nullptr);
  if (!status.ok()) return status;
  std::string text;
  const IOStatus read = rocksdb::ReadFileToString(files_.get(), path_, &text);
  if (!read.ok() && !IsAbsent(read)) return read;
  const std::string ledger = LedgerText();
  if (ledger.empty()) return IOStatus::OK();
  const std::optional<uint64_t> marked = GreatestOf(text, ledger);
  if (marked.has_value()) return RemoveAbove(*marked, &names);
  uint64_t greatest = 0;
  for (const std::string& name : names) greatest = std::max(greatest, MadeFileNumber(name));
  return Write(MarkText(ledger, greatest));
}

IOStatus OpeningMark::Remove() {
  const IOStatus removed = files_->DeleteFile(path_, IOOptions(), nullptr);
  return IsAbsent(removed) ? IOStatus::OK() : removed;
}

// Which ledger it is, and which state of it: no open that is not kept changes any of this. Empty
// when that cannot be told.
std::string OpeningMark::LedgerText() const {
  const std::string manifest = ManifestState(dir_);
  if (manifest.empty()) return manifest;
  std::string identity;
  rocksdb::ReadFileToString(files_.get(), dir_ + "/IDENTITY", &identity).PermitUncheckedError();
  return manifest + "\n" + identity + "\n";
}

IOStatus OpeningMark::RemoveAbove(uint64_t number, std::vector<std::string>* names) {
  for (const std::string& name : *names) {
    if (MadeFileNumber(name) <= number) continue;
    IOStatus removed = files_->DeleteFile(dir_ + "/" + name, IOOptions(), nullptr);
    if (!removed.ok() && !IsAbsent(removed)) return removed;
  }
  return IOStatus::OK();
}

IOStatus OpeningMark::Write(const std::string& text) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = files_->NewWritableFile(path_, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = file->Append(text, IOOptions(), nullptr);
  if (file == nullptr) return status;
  const IOStatus closed = file->Close(IOOptions(), nullptr);
  return status.ok() ? closed : status;
}

}  // namespace nowcalls::store
