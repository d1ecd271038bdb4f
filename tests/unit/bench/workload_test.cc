#include "bench/workload.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace nowcalls::bench {
namespace {

constexpr int64_t kMs = 1'000'000;

struct Request {
  bool release = false;
  uint32_t connection = 0;
  uint32_t lane = 0;
  uint32_t flow = 0;
  uint64_t token = 0;
};

// Writes down what it is asked for.
class NotingDialect : public Dialect {
 public:
  NotingDialect(uint32_t connection, std::vector<Request>* requests)
      : connection_(connection), requests_(requests) {}
  void Greet(wire::OutputBuffer* /*out*/) override {}
  void Acquire(uint32_t lane, uint32_t flow, int64_t /*wall_ms*/,
               wire::OutputBuffer* /*out*/) override {
    requests_->push_back({false, connection_, lane, flow, 0});
  }
  void Release(uint32_t lane, uint32_t flow, uint64_t token, wire::OutputBuffer* /*out*/) override {
    requests_->push_back({true, connection_, lane, flow, token});
  }
  Outcome Take(std::string_view* /*input*/, Answer* /*answer*/) override {
    return Outcome::kIncomplete;
  }
  std::string error() const override { return ""; }

 private:
  uint32_t connection_;
  std::vector<Request>* requests_;
};

// A load whose server is the test.
class Stage {
 public:
  Stage(uint32_t connections, const WorkloadOptions& options, uint32_t flows = 1)
      : recorder(std::make_unique<Recorder>()),
        workload(options, FlowPicker(0, flows, FlowDistribution::kRoundRobin, 0), recorder.get()) {
    recorder->Count(0, 1000 * kMs);
    for (uint32_t i = 0; i < connections; ++i) {
      dialects_.push_back(std::make_unique<NotingDialect>(i, &requests));
      workload.AddConnection(dialects_.back().get(), &out_);
    }
  }

  static Moment At(int64_t ms) { return {ms * kMs, ms}; }
  // The requests since the last call.
  std::vector<Request> Take() { return std::exchange(requests, {}); }
  void Grant(const Request& request, int64_t ms, uint64_t token = 1) {
    CHECK(workload.OnAnswer(request.connection, {AnswerKind::kGranted, {}, request.lane, token},
                            At(ms)));
    workload.StartWaiting(request.connection, At(ms));
  }
  void Answered(const Request& request, AnswerKind kind, int64_t ms) {
    Answer answer;
    answer.kind = kind;
    answer.lane = request.lane;
    answer.refused_by = RefusedBy::kLevel;
    answer.error_name = "OVERLOADED";
    CHECK(workload.OnAnswer(request.connection, answer, At(ms)));
    workload.StartWaiting(request.connection, At(ms));
  }

  std::vector<Request> requests;
  std::unique_ptr<Recorder> recorder;
  Workload workload;

 private:
  wire::OutputBuffer out_;
  std::vector<std::unique_ptr<NotingDialect>> dialects_;
};

WorkloadOptions Closed(uint32_t lanes, int64_t hold_ms = 0) {
  WorkloadOptions options;
  options.lanes = lanes;
  options.hold_ns = hold_ms * kMs;
  return options;
}

WorkloadOptions Open(uint32_t lanes, double arrivals_per_s) {
  WorkloadOptions options;
  options.lanes = lanes;
  options.arrivals_per_s = arrivals_per_s;
  return options;
}

// The first of those that wait for an answer gets it.
void AnswerFirst(Stage* stage, std::vector<Request>* open, int64_t ms) {
  const Request request = open->front();
  open->erase(open->begin());
  if (request.release) {
    stage->Answered(request, AnswerKind::kReleased, ms);
  } else {
    stage->Grant(request, ms);
  }
}

TEST_CASE("a closed loop starts every lane at once, and each goes on when it is answered") {
  Stage stage(2, Closed(3));
  stage.workload.Start(Stage::At(0));
  const std::vector<Request> first = stage.Take();
  REQUIRE(first.size() == 6);
  CHECK(stage.workload.busy_lanes() == 6);
  CHECK(stage.workload.next_due_ns() == Workload::kNever);
  stage.Grant(first[4], 5, 77);
  const std::vector<Request> release = stage.Take();
  REQUIRE(release.size() == 1);
  CHECK(release[0].release);
  CHECK(release[0].token == 77);
  CHECK(release[0].connection == first[4].connection);
  CHECK(release[0].lane == first[4].lane);
  stage.Answered(release[0], AnswerKind::kReleased, 8);
  const std::vector<Request> next = stage.Take();
  REQUIRE(next.size() == 1);
  CHECK_FALSE(next[0].release);
  CHECK(stage.recorder->acquire().max() == 5 * kMs);
  CHECK(stage.recorder->release().max() == 3 * kMs);
  CHECK(stage.recorder->send_delay().max() == 0);
}

TEST_CASE("a held token is released when its time is over, and its latency begins then") {
  Stage stage(1, Closed(2, 10));
  stage.workload.Start(Stage::At(0));
  const std::vector<Request> first = stage.Take();
  stage.Grant(first[0], 1, 100);
  stage.Grant(first[1], 3, 200);
  CHECK(stage.Take().empty());
  CHECK(stage.workload.next_due_ns() == 11 * kMs);
  stage.workload.Advance(Stage::At(10));
  CHECK(stage.Take().empty());
  stage.workload.Advance(Stage::At(12));
  const std::vector<Request> release = stage.Take();
  REQUIRE(release.size() == 1);
  CHECK(release[0].token == 100);
  CHECK(stage.workload.next_due_ns() == 13 * kMs);
  stage.Answered(release[0], AnswerKind::kReleased, 15);
  CHECK(stage.recorder->release().max() == 4 * kMs);  // From 11, not from 12.
  CHECK(stage.recorder->send_delay().max() == 1 * kMs);
}

TEST_CASE("a refused or failed lane of a closed loop asks again at once") {
  Stage stage(1, Closed(1));
  stage.workload.Start(Stage::At(0));
  stage.Answered(stage.Take()[0], AnswerKind::kRefused, 1);
  const std::vector<Request> second = stage.Take();
  REQUIRE(second.size() == 1);
  CHECK_FALSE(second[0].release);
  stage.Answered(second[0], AnswerKind::kError, 2);
  CHECK(stage.Take().size() == 1);
  CHECK(stage.workload.refused() == 1);
  CHECK(stage.recorder->refusals()[static_cast<size_t>(RefusedBy::kLevel)] == 1);
  CHECK(stage.recorder->errors().at("OVERLOADED").count == 1);
  CHECK(stage.recorder->acquire().count() == 0);
}

TEST_CASE("flows take turns over all connections") {
  Stage stage(2, Closed(2), 3);
  stage.workload.Start(Stage::At(0));
  std::vector<uint32_t> flows;
  for (const Request& request : stage.Take()) flows.push_back(request.flow);
  CHECK(flows == std::vector<uint32_t>{0, 1, 2, 0});
}

TEST_CASE("a load that keeps its tokens ends after as many as were asked for") {
  WorkloadOptions options = Closed(2);
  options.release = false;
  options.cycles_max = 3;
  Stage stage(1, options);
  stage.workload.Start(Stage::At(0));
  const std::vector<Request> first = stage.Take();
  stage.Grant(first[0], 1);
  const std::vector<Request> third = stage.Take();
  REQUIRE(third.size() == 1);
  CHECK_FALSE(third[0].release);
  stage.Grant(first[1], 1);
  CHECK(stage.Take().empty());
  CHECK_FALSE(stage.workload.idle());
  stage.Grant(third[0], 2);
  CHECK(stage.workload.idle());
  CHECK(stage.workload.granted() == 3);
}

TEST_CASE("arrivals of an open loop come on a fixed schedule, to the connections in turn") {
  Stage stage(3, Open(10, 500));  // One each 2 ms.
  stage.workload.Start(Stage::At(0));
  CHECK(stage.Take().size() == 1);
  CHECK(stage.workload.next_due_ns() == 2 * kMs);
  stage.workload.Advance(Stage::At(1));
  CHECK(stage.Take().empty());
  stage.workload.Advance(Stage::At(9));
  std::vector<uint32_t> connections;
  for (const Request& request : stage.Take()) connections.push_back(request.connection);
  CHECK(connections == std::vector<uint32_t>{1, 2, 0, 1});
  CHECK(stage.workload.next_due_ns() == 10 * kMs);
  CHECK(stage.recorder->send_delay().max() == 7 * kMs);  // The one that was due at 2.
}

TEST_CASE("an arrival that finds no lane waits, and its latency runs from when it was due") {
  Stage stage(1, Open(1, 1000));  // One each ms.
  stage.workload.Start(Stage::At(0));
  const std::vector<Request> first = stage.Take();
  REQUIRE(first.size() == 1);
  stage.workload.Advance(Stage::At(5));
  CHECK(stage.Take().empty());
  CHECK(stage.workload.waiting() == 5);
  CHECK(stage.workload.BehindNs(5 * kMs) == 5 * kMs);  // Due at 0, and in flight.
  CHECK_FALSE(stage.workload.idle());
  stage.Answered(first[0], AnswerKind::kRefused, 7);
  const std::vector<Request> second = stage.Take();
  REQUIRE(second.size() == 1);
  CHECK(stage.workload.waiting() == 4);
  stage.Grant(second[0], 10);
  CHECK(stage.recorder->acquire().max() == 9 * kMs);    // Due at 1.
  CHECK(stage.workload.BehindNs(10 * kMs) == 8 * kMs);  // Due at 2, and waits.
}

TEST_CASE("an open loop is behind by its oldest request in flight, also when none waits") {
  Stage stage(2, Open(10, 1000));  // One each ms.
  stage.workload.Start(Stage::At(0));
  stage.workload.Advance(Stage::At(5));
  const std::vector<Request> acquires = stage.Take();
  REQUIRE(acquires.size() == 6);
  CHECK(stage.workload.waiting() == 0);
  CHECK(stage.workload.in_flight() == 6);
  CHECK(stage.workload.BehindNs(9 * kMs) == 9 * kMs);
  for (const size_t answered : {0U, 1U, 3U}) {
    stage.Answered(acquires[answered], AnswerKind::kRefused, 9);
  }
  CHECK(stage.workload.BehindNs(9 * kMs) == 7 * kMs);  // Due at 2.
  stage.Grant(acquires[2], 10);
  CHECK(stage.workload.BehindNs(10 * kMs) == 6 * kMs);  // Due at 4; the release is due since 10.
  stage.Answered(acquires[4], AnswerKind::kError, 11);
  stage.Answered(acquires[5], AnswerKind::kError, 11);
  CHECK(stage.workload.BehindNs(14 * kMs) == 4 * kMs);  // The release.
  stage.Answered(stage.Take()[0], AnswerKind::kReleased, 14);
  CHECK(stage.workload.BehindNs(14 * kMs) == 0);
}

TEST_CASE("a token that an open loop holds is no request, until it is to be released") {
  WorkloadOptions options = Open(2, 10);  // One each 100 ms.
  options.hold_ns = 50 * kMs;
  Stage stage(1, options);
  stage.workload.Start(Stage::At(0));
  stage.Grant(stage.Take()[0], 1);
  CHECK(stage.workload.in_flight() == 0);
  CHECK(stage.workload.BehindNs(40 * kMs) == 0);
  stage.workload.Advance(Stage::At(60));
  CHECK(stage.workload.in_flight() == 1);
  CHECK(stage.workload.BehindNs(60 * kMs) == 9 * kMs);  // Due at 51.
}

TEST_CASE("whether an open loop is behind is the same however often it is asked") {
  for (const int64_t step_ms : {1, 7, 40}) {
    CAPTURE(step_ms);
    WorkloadOptions options = Open(4, 200);  // One each 5 ms.
    options.hold_ns = 30 * kMs;
    Stage stage(2, options);
    stage.workload.Start(Stage::At(0));
    std::vector<Request> open;
    uint32_t behind = 0;
    for (int64_t ms = 0; ms < 2000; ++ms) {
      stage.workload.Advance(Stage::At(ms));
      for (const Request& request : stage.Take()) open.push_back(request);
      // One at a time, some a little late, and from time to time none for a while.
      if (ms % 3 == 0 && ms % 500 > 60 && !open.empty()) {
        AnswerFirst(&stage, &open, ms);
      }
      if (ms % step_ms != 0) continue;
      const bool is_behind = stage.workload.IsBehind(ms * kMs, 40 * kMs);
      CHECK(is_behind == (stage.workload.BehindNs(ms * kMs) > 40 * kMs));
      behind += is_behind ? 1 : 0;
    }
    CHECK(behind > 0);
    CHECK(behind < 2000 / step_ms);
  }
}

TEST_CASE("a look at an open loop that has yet to send what is due forgets none of it") {
  Stage stage(1, Open(4, 200));  // One each 5 ms.
  stage.workload.Start(Stage::At(0));
  stage.Grant(stage.Take()[0], 1);
  stage.Answered(stage.Take()[0], AnswerKind::kReleased, 2);
  CHECK_FALSE(stage.workload.IsBehind(12 * kMs, 2 * kMs));
  stage.workload.Advance(Stage::At(13));
  CHECK(stage.workload.IsBehind(13 * kMs, 2 * kMs));  // The one that was due at 5.
}

TEST_CASE("a closed loop is never behind") {
  Stage stage(1, Closed(2));
  CHECK_FALSE(stage.workload.IsBehind(0, 0));
  stage.workload.Start(Stage::At(0));
  CHECK(stage.workload.BehindNs(1000 * kMs) == 0);
  CHECK_FALSE(stage.workload.IsBehind(1000 * kMs, 1 * kMs));
}

TEST_CASE("a load that is finished does what was due and releases what is held") {
  WorkloadOptions options = Open(2, 1000);
  options.hold_ns = 50 * kMs;
  Stage stage(1, options);
  stage.workload.Start(Stage::At(0));
  stage.workload.Advance(Stage::At(2));
  const std::vector<Request> acquires = stage.Take();
  REQUIRE(acquires.size() == 2);
  stage.Grant(acquires[0], 3, 100);
  stage.workload.Finish(Stage::At(4));
  CHECK(stage.workload.next_due_ns() == Workload::kNever);
  const std::vector<Request> release = stage.Take();
  REQUIRE(release.size() == 1);
  CHECK(release[0].token == 100);
  CHECK(stage.workload.waiting() == 3);  // Due at 2, 3 and 4.
  stage.Answered(release[0], AnswerKind::kReleased, 5);
  stage.Grant(acquires[1], 5, 200);
  std::vector<Request> open = stage.Take();
  CHECK(open.size() == 2);  // The release of 200, and the first that waited.
  for (int64_t ms = 6; !open.empty(); ++ms) {
    AnswerFirst(&stage, &open, ms);
    for (const Request& more : stage.Take()) open.push_back(more);
    stage.workload.Advance(Stage::At(ms));
  }
  CHECK(stage.workload.idle());
  CHECK(stage.workload.granted() == 5);
}

TEST_CASE("an answer to what was not asked is not taken") {
  Stage stage(1, Closed(2, 10));
  stage.workload.Start(Stage::At(0));
  const Moment now = Stage::At(1);
  CHECK_FALSE(stage.workload.OnAnswer(0, {AnswerKind::kGranted, {}, 2, 1}, now));
  CHECK_FALSE(stage.workload.OnAnswer(0, {AnswerKind::kReleased, {}, 0, 1}, now));
  CHECK(stage.workload.OnAnswer(0, {AnswerKind::kGranted, {}, 0, 1}, now));
  CHECK_FALSE(stage.workload.OnAnswer(0, {AnswerKind::kGranted, {}, 0, 1}, now));
  CHECK_FALSE(stage.workload.OnAnswer(0, {AnswerKind::kError, {}, 0, 1}, now));
}

TEST_CASE("connections with new requests are handed out once") {
  Stage stage(3, Closed(2));
  stage.workload.Start(Stage::At(0));
  std::vector<uint32_t> touched;
  const auto note = [&touched](uint32_t connection) { touched.push_back(connection); };
  stage.workload.TakeTouched(note);
  CHECK(touched == std::vector<uint32_t>{0, 1, 2});
  stage.Grant(stage.Take()[2], 1);
  touched.clear();
  stage.workload.TakeTouched(note);
  CHECK(touched == std::vector<uint32_t>{1});
  touched.clear();
  stage.workload.TakeTouched(note);
  CHECK(touched.empty());
}

TEST_CASE("over a long time an open loop starts exactly its rate") {
  Stage stage(7, Open(1000, 3333));
  stage.workload.Start(Stage::At(0));
  uint64_t started = 0;
  for (int64_t ms = 0; ms < 3000; ms += 13) {
    stage.workload.Advance(Stage::At(ms));
    for (const Request& request : stage.Take()) {
      ++started;
      stage.Answered(request, AnswerKind::kRefused, ms);
    }
  }
  stage.workload.Advance({3000 * kMs - 1, 0});
  started += stage.Take().size();
  CHECK(started == 9999);
}

}  // namespace
}  // namespace nowcalls::bench
