// repair: what was lost, what was changed and what was kept, for people.
#include <string>

#include "admin/commands.h"
#include "admin/owner.h"
#include "admin/repair.h"
#include "base/counted.h"
#include "base/text.h"

namespace nowcalls::admin {
namespace {

std::string SealLine(const RepairSummary& summary) {
  if (!summary.seal.has_value()) {
    return "lost: the seal; which batch was the last, and how many tokens it left, is unknown\n";
  }
  const ledger::Seal& seal = *summary.seal;
  std::string lines;
  // A log or the witness names a later batch than the last seal that was read.
  if (summary.newest_batch > seal.batch_number) {
    const uint64_t first = seal.batch_number + 1;
    const bool one = first == summary.newest_batch;
    lines = "lost: " + std::string(one ? "batch " : "batches ") + std::to_string(first) +
            (one ? "" : " to " + std::to_string(summary.newest_batch)) +
            ", and perhaps later ones that nothing tells of: the last that is left is batch " +
            std::to_string(seal.batch_number) + "\n";
  }
  // The seal tells how many tokens its batch left. The sum of fences finds other tokens in the same
  // number.
  const bool same_count =
      seal.live_tokens == summary.tokens && seal.live_count_sum == summary.now_calls;
  if (same_count && seal.live_fence_sum == summary.fence_sum) return lines;
  return lines + "differs: batch " + std::to_string(seal.batch_number) + " was sealed over " +
         Counted(seal.live_tokens, "token") + " with nowCalls " +
         std::to_string(seal.live_count_sum) +
         (same_count ? ", but not these: some are lost, and as many that had ended are back" : "") +
         "\n";
}

}  // namespace

std::string RepairText(const RepairSummary& summary, const std::string& to) {
  std::string text;
  for (const std::string& what : summary.lost) text += "lost: " + TerminalText(what) + "\n";
  text += SealLine(summary);
  for (const std::string& what : summary.changes) text += "changed: " + TerminalText(what) + "\n";
  return text + "salvaged into " + to + ": " + Counted(summary.tokens, "token") +
         " with nowCalls " + std::to_string(summary.now_calls) + ", " +
         Counted(summary.sessions, "session") + ", " + Counted(summary.rules, "rule") + ", " +
         Counted(summary.history, "history row") + "; fences go on at " +
         std::to_string(summary.next_fence) + "\n";
}

Status PrintRepair(const Arguments& arguments, Output* out) {
  // The owner is looked up first: a misspelt user must not leave a salvaged ledger behind.
  Result<Owner> owner = Owner();
  if (!arguments.owner.empty()) owner = FindOwner(arguments.owner);
  if (!owner.ok()) return owner.status();
  const Result<RepairSummary> summary = Repair(arguments.data_dir, arguments.to);
  if (!summary.ok()) return summary.status();
  out->Write(RepairText(*summary, arguments.to));
  if (!arguments.owner.empty()) return GiveTo(arguments.to, *owner);
  out->Write(OwnerNote(arguments.to, arguments.data_dir + "/ledger"));
  return {};
}

}  // namespace nowcalls::admin
