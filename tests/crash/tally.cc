#include "crash/tally.h"

namespace nowcalls::crash {
namespace {

// What a request that was answered counts as; empty: nothing special.
std::string NameOf(const Operation& operation) {
  switch (operation.action) {
    case Action::kCancel: return "cancels answered";
    case Action::kReclaim: return "reclaims of a token answered";
    case Action::kReclaimFlow: return "reclaims of a flow answered";
    case Action::kReclaimClient: return "reclaims of a client answered";
    case Action::kPurge: return operation.outcome == Outcome::kReclaimed ? "purges answered" : "";
    case Action::kDrain: return "drains answered";
    default: return "";
  }
}

}  // namespace

void AddToTally(const History& history, std::map<std::string, int64_t>* tally) {
  for (const Items items : history.Acquires()) {
    if (items.size() == 1) continue;
    switch (items.front().outcome) {
      case Outcome::kGranted: ++(*tally)["groups granted"]; break;
      case Outcome::kRefused: ++(*tally)["groups refused"]; break;
      default: ++(*tally)["groups left unanswered"]; break;
    }
  }
  for (const auto& operation : history.operations) {
    if (operation.outcome == Outcome::kUnknown) {
      if (operation.action == Action::kCancel) ++(*tally)["cancels left unanswered"];
      continue;
    }
    const std::string name = NameOf(operation);
    if (!name.empty()) ++(*tally)[name];
    if (operation.outcome == Outcome::kReclaimed) {
      (*tally)["tokens taken back from a flow or a client"] += operation.reclaimed;
    }
    if (operation.outcome != Outcome::kGranted || operation.items > 1) continue;
    if (operation.request_id != 0) ++(*tally)["acquires with a request id granted"];
    if (operation.wait_ms != 0) ++(*tally)["acquires that might wait granted"];
  }
}

}  // namespace nowcalls::crash
