#include "web/health.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace nowcalls::web {
namespace {

using Json = nlohmann::ordered_json;

// What both tell; `problems` gets what is wrong.
Json Facts(const Board& board, int64_t now_ms, Json* problems) {
  const auto phase = board.phase.load(std::memory_order_acquire);
  const int64_t turns_by_ms = board.turns_by_ms.load(std::memory_order_relaxed);
  const int64_t commit_since_ms = board.commit_since_ms.load(std::memory_order_relaxed);
  // A long load is no loop that stands still: lateness counts once the loop has turned.
  const bool turns = phase > Board::Phase::kStandby && turns_by_ms != 0;
  const int64_t late_ms = turns && now_ms > turns_by_ms ? now_ms - turns_by_ms : 0;
  const int64_t commit_ms =
      commit_since_ms != 0 && now_ms > commit_since_ms ? now_ms - commit_since_ms : 0;
  if (late_ms > kHungMsMax) {
    problems->push_back("the serving loop has stood still for " + std::to_string(late_ms) + " ms");
  }
  const uint64_t term = board.cluster_term.load(std::memory_order_relaxed);
  if (commit_ms > kHungMsMax) {
    problems->push_back("a commit has not ended for " + std::to_string(commit_ms) +
                        " ms: look at " + (term > 0 ? "etcd and " : "") + "the ledger's disk");
  }
  Json facts = {{"phase", Board::PhaseName(phase)},
                {"loop_late_ms", late_ms},
                {"commit_under_way_ms", commit_ms}};
  if (term > 0) {
    facts["role"] = IsWriter(board) ? "writer" : "standby";
    facts["term"] = term;
    facts["lag_batches"] = board.cluster_lag.load(std::memory_order_relaxed);
  }
  return facts;
}

// Nothing: it could take over now.
std::optional<std::string> WhyNoTakeover(const Board& board) {
  if (!board.cluster_follows.load(std::memory_order_relaxed)) {
    return "it does not follow the cluster's log: etcd does not answer, or it takes a copy";
  }
  const uint64_t lag = board.cluster_lag.load(std::memory_order_relaxed);
  if (lag <= kReadyLagMax) return std::nullopt;
  return "it lacks " + std::to_string(lag) + " batches of the cluster's log";
}

Response Told(const Json& facts, const Json& problems) {
  Json body = {{"status", problems.empty() ? "ok" : "failing"}, {"problems", problems}};
  body.update(facts);
  return {.status = problems.empty() ? 200 : 503,
          .type = std::string(kJson),
          .body = body.dump() + "\n",
          .headers = {{"Cache-Control", "no-store"}}};
}

}  // namespace

Response AnswerHealth(const Board& board, int64_t now_ms) {
  Json problems = Json::array();
  Json facts = Facts(board, now_ms, &problems);
  return Told(facts, problems);
}

Response AnswerReady(const Board& board, int64_t now_ms, bool standby_ok) {
  Json problems = Json::array();
  const Json facts = Facts(board, now_ms, &problems);
  switch (board.phase.load(std::memory_order_acquire)) {
    case Board::Phase::kLoading: problems.push_back("the ledger is being loaded"); break;
    case Board::Phase::kStandby:
      if (!standby_ok) {
        problems.push_back("another member of the cluster serves");
      } else if (const auto why = WhyNoTakeover(board)) {
        problems.push_back(*why);
      }
      break;
    case Board::Phase::kServing: break;
    case Board::Phase::kEnding: problems.push_back("the server ends"); break;
  }
  return Told(facts, problems);
}

}  // namespace nowcalls::web
