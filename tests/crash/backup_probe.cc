#include "crash/backup_probe.h"

#include <filesystem>

#include "base/clock.h"
#include "crash/ledger_view.h"

namespace nowcalls::crash {

namespace fs = std::filesystem;
using testing::ProductBinary;

void BackupProbe::Begin(const std::string& address) {
  asked_us_ = BoottimeUs();
  tool_.emplace(testing::Process::Options{
      .argv = {ProductBinary("nowcalls-admin"), "backup", "--to", backup_, "--server", address},
      .environment = {}});
}

bool BackupProbe::HasBegun() const { return fs::exists(backup_); }

bool BackupProbe::IsFinished() const { return fs::exists(backup_ + "/backup.json"); }

std::optional<LedgerCopy> BackupProbe::Judge(
    const std::function<Violations(const std::string&)>& check_rules, Violations* violations) {
  const bool acknowledged = tool_->Wait() == 0;
  tool_.reset();
  state_ = IsFinished()          ? State::kFinished
           : fs::exists(backup_) ? State::kUnfinished
                                 : State::kNotBegun;
  const bool finished = state_ == State::kFinished;
  if (acknowledged && !finished)
    violations->push_back("I9 the backup is acknowledged, but not made");
  const testing::Finished restored = testing::RunProgram(
      {ProductBinary("nowcalls-admin"), "restore", "--from", backup_, "--data-dir", restored_});
  if (!finished && (restored.exit_code == 0 || fs::exists(restored_))) {
    violations->push_back("I9 restore takes a backup that is not finished: " + restored.out);
  }
  if (finished && restored.exit_code != 0) {
    violations->push_back("I9 restore refuses a finished backup: " + restored.err);
  }
  std::optional<LedgerCopy> copy;
  if (finished && restored.exit_code == 0) {
    const auto source = testing::Source::Offline(restored_);
    const testing::Finished verified = testing::RunAdmin(source, {"verify"});
    if (verified.exit_code != 0) {
      violations->push_back("I9 verify finds in what was restored: " + verified.out + verified.err);
    }
    const Violations of_rules = check_rules(restored_);
    violations->insert(violations->end(), of_rules.begin(), of_rules.end());
    copy = LedgerCopy{asked_us_, ReadLedger(source)};
  }
  if (violations->empty()) {
    fs::remove_all(backup_);
    fs::remove_all(restored_);
  }
  return copy;
}

}  // namespace nowcalls::crash
