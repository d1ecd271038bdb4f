// Health from a board that a test writes.
#include "web/health.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace nowcalls::web {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNow = 1'000'000;

Json BodyOf(const Response& response) { return Json::parse(response.body); }

}  // namespace

TEST_CASE("a server that loads is healthy and not ready") {
  Board board;
  CHECK(AnswerHealth(board, kNow).status == 200);
  const Response ready = AnswerReady(board, kNow);
  CHECK(ready.status == 503);
  CHECK(BodyOf(ready)["phase"] == "loading");
  CHECK(BodyOf(ready)["problems"] == Json::array({"the ledger is being loaded"}));
}

TEST_CASE("a server that serves is ready until it ends") {
  Board board;
  board.phase = Board::Phase::kServing;
  board.turns_by_ms = kNow + 5'000;
  CHECK(AnswerHealth(board, kNow).status == 200);
  CHECK(AnswerReady(board, kNow).status == 200);
  board.phase = Board::Phase::kEnding;
  CHECK(AnswerHealth(board, kNow).status == 200);
  CHECK(AnswerReady(board, kNow).status == 503);
}

TEST_CASE("a loop that stands still, and a commit that hangs, are told") {
  Board board;
  board.phase = Board::Phase::kServing;
  board.turns_by_ms = kNow;
  CHECK(AnswerHealth(board, kNow + kHungMsMax).status == 200);
  const Response late = AnswerHealth(board, kNow + kHungMsMax + 1);
  CHECK(late.status == 503);
  CHECK(BodyOf(late)["status"] == "failing");
  CHECK(BodyOf(late)["loop_late_ms"] == kHungMsMax + 1);
  board.turns_by_ms = kNow + 60'000;
  board.commit_since_ms = kNow;
  CHECK(AnswerHealth(board, kNow + kHungMsMax + 1).status == 503);
  CHECK(AnswerReady(board, kNow + kHungMsMax + 1).status == 503);
  const auto where = [&] {
    return BodyOf(AnswerHealth(board, kNow + kHungMsMax + 1))["problems"][0].get<std::string>();
  };
  CHECK(where().ends_with("look at the ledger's disk"));
  board.cluster_term = 1;
  CHECK(where().ends_with("look at etcd and the ledger's disk"));
  board.cluster_term = 0;
  board.commit_since_ms = 0;
  CHECK(AnswerHealth(board, kNow + kHungMsMax + 1).status == 200);
}

TEST_CASE("a member of a cluster tells its role, and is ready as the writer alone") {
  Board board;
  CHECK_FALSE(BodyOf(AnswerHealth(board, kNow)).contains("role"));
  board.phase = Board::Phase::kStandby;
  board.cluster_term = 7;
  board.cluster_lag = 3;
  const Response standby = AnswerHealth(board, kNow);
  CHECK(standby.status == 200);
  CHECK(BodyOf(standby)["role"] == "standby");
  CHECK(BodyOf(standby)["term"] == 7);
  CHECK(BodyOf(standby)["lag_batches"] == 3);
  CHECK(AnswerReady(board, kNow).status == 503);
  board.phase = Board::Phase::kServing;
  CHECK(BodyOf(AnswerReady(board, kNow))["role"] == "writer");
  CHECK(AnswerReady(board, kNow).status == 200);
}

TEST_CASE("a standby that could take over is ready for who asks with standby=ok") {
  Board board;
  const auto ready = [&board] { return AnswerReady(board, kNow, /*standby_ok=*/true); };
  CHECK(ready().status == 503);  // It loads.
  board.phase = Board::Phase::kStandby;
  board.cluster_term = 7;
  CHECK(ready().status == 503);
  CHECK(BodyOf(ready())["problems"] ==
        Json::array({"it does not follow the cluster's log: etcd does not answer, or it takes a "
                     "copy"}));
  board.cluster_follows = true;
  board.cluster_lag = kReadyLagMax;
  CHECK(ready().status == 200);
  CHECK(AnswerReady(board, kNow).status == 503);
  board.cluster_lag = kReadyLagMax + 1;
  CHECK(BodyOf(ready())["problems"] == Json::array({"it lacks 257 batches of the cluster's log"}));
  board.phase = Board::Phase::kServing;
  CHECK(ready().status == 200);
  board.phase = Board::Phase::kEnding;
  CHECK(ready().status == 503);
}

}  // namespace nowcalls::web
