// What a simulated client of Sentinel's frames makes of answers.
#include "sim/sentinel_caller.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "sim/faults.h"
#include "sim/timeline.h"

namespace nowcalls::sim {
namespace {

using wire::sentinel::RequestType;

class Flower : public SentinelCaller {
 public:
  explicit Flower(Network* network) : SentinelCaller("flower", network, "10.0.1.1") {}
  void Flow() {
    Call(
        RequestType::kFlow,
        [](uint32_t xid, wire::OutputBuffer* out) {
          wire::sentinel::EncodeShortCallRequest(xid, RequestType::kFlow, 1, 1, out);
        },
        [this](const wire::sentinel::Response* response) {
          lost += response == nullptr ? 1 : 0;
          answered += response == nullptr ? 0 : 1;
        });
  }
  void Left() override {}
  void Misunderstood(const std::string& /*what*/) override { ++misunderstood; }

  int answered = 0;
  int lost = 0;
  int misunderstood = 0;
};

// A client with two requests, 1 and 2, on its way.
struct Talk {
  Talk() {
    network.SetWatch({[](size_t) {}, [](LinkId) {}, [](LinkId) {}});
    network.ServerStarted(0);
    flower.Connect(/*steady=*/true);
    flower.Flow();
    flower.Flow();
    Pass(1);
  }
  void Pass(int64_t ms) {
    timeline.RunUntil(timeline.now_us() + ms * kMs, [] { return false; });
  }
  void Answer(uint32_t xid, RequestType type, TokenStatus status, size_t from = 0,
              size_t until = std::string::npos) {
    wire::OutputBuffer out;
    wire::sentinel::EncodeRate(xid, type, status, 0, 0, &out);
    network.Write(flower.link(), out.view().substr(from, until));
    Pass(1);
  }

  Timeline timeline;
  const FaultPlan plan{};
  FaultCounts faults;
  Network network{&timeline, &plan, &faults, 1};
  Flower flower{&network};
};

TEST_CASE("answers in frames are told apart by their numbers, in any order and in pieces") {
  Talk talk;
  talk.Answer(2, RequestType::kFlow, TokenStatus::kOk, 0, 5);
  CHECK(talk.flower.answered == 0);
  talk.Answer(2, RequestType::kFlow, TokenStatus::kOk, 5);
  talk.Answer(1, RequestType::kFlow, TokenStatus::kBlocked);
  CHECK(talk.flower.answered == 2);
  CHECK(talk.flower.unanswered() == 0);
  CHECK(talk.flower.misunderstood == 0);
}

TEST_CASE("an answer in a frame that nobody asked for is noticed") {
  Talk talk;
  SUBCASE("another number") { talk.Answer(3, RequestType::kFlow, TokenStatus::kOk); }
  SUBCASE("another type") { talk.Answer(1, RequestType::kParamFlow, TokenStatus::kOk); }
  SUBCASE("twice") {
    talk.Answer(1, RequestType::kFlow, TokenStatus::kOk);
    talk.Answer(1, RequestType::kFlow, TokenStatus::kOk);
  }
  CHECK(talk.flower.misunderstood == 1);
}

TEST_CASE("a frame of which the network held a part for too long was not carried out") {
  Talk talk;
  SUBCASE("not so long") {
    talk.Answer(1, RequestType::kFlow, TokenStatus::kBadRequest);
    CHECK(talk.flower.answered == 1);
  }
  SUBCASE("too long") {
    talk.Pass(Limits().message_incomplete_ms);
    talk.Answer(1, RequestType::kFlow, TokenStatus::kBadRequest);
    CHECK(talk.flower.lost == 1);
  }
}

}  // namespace
}  // namespace nowcalls::sim
