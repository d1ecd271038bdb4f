// What a simulated client makes of answers.
#include "sim/rpc_caller.h"

#include <doctest/doctest.h>

#include "base/limits.h"
#include "sim/faults.h"
#include "sim/timeline.h"
#include "wire/messages.h"

namespace nowcalls::sim {
namespace {

class Pinger : public RpcCaller {
 public:
  explicit Pinger(Network* network) : RpcCaller("pinger", network, "10.0.0.1") {}
  void Ping() {
    Call([](uint32_t msgid,
            wire::OutputBuffer* out) { wire::EncodePlainRequest(msgid, wire::Method::kPing, out); },
         [this](const wire::Response* response) {
           ++answers;
           lost += response == nullptr ? 1 : 0;
         });
  }
  void Misunderstood(const std::string& /*what*/) override {}

  int answers = 0;
  int lost = 0;
};

// Seed 9003250 once: the answer was taken for one to nothing.
TEST_CASE("a request of which the network held a part for too long was not carried out") {
  for (const int64_t late_ms : {int64_t{-2}, int64_t{0}}) {
    CAPTURE(late_ms);
    Timeline timeline;
    const FaultPlan plan;
    FaultCounts faults;
    Network network(&timeline, &plan, &faults, 1);
    network.SetWatch({[](size_t) {}, [](LinkId) {}, [](LinkId) {}});
    network.ServerStarted(0);
    Pinger pinger(&network);
    const auto pass = [&](int64_t ms) {
      timeline.RunUntil(timeline.now_us() + ms * kMs, [] { return false; });
    };
    pinger.Connect(/*steady=*/true);
    pinger.Ping();
    pass(Limits().message_incomplete_ms + late_ms);
    wire::Envelope envelope;
    wire::RequestError ignored;
    REQUIRE(wire::DecodeEnvelope(network.link(pinger.link()).inbox, &envelope, &ignored));
    wire::OutputBuffer out;
    wire::EncodeError(envelope.msgid, {wire::ErrorCode::kMalformed, "half"}, &out);
    network.Write(pinger.link(), out.view());
    pass(1);
    CHECK(pinger.answers == 1);
    CHECK(pinger.lost == (late_ms < 0 ? 0 : 1));
  }
}

}  // namespace
}  // namespace nowcalls::sim
