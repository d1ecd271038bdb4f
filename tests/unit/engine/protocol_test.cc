// The seam between protocols and the engine, with a protocol that is not MessagePack-RPC: frames
// with a length, answers of one size, no hello, and late answers with the number of the request.
#include "engine/protocol.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "engine/batches.h"
#include "engine/closing.h"
#include "engine/connections.h"
#include "engine/inputs.h"
#include "engine/late_answers.h"
#include "engine/outputs.h"
#include "engine/protocols.h"
#include "engine/strangers.h"
#include "store/memory_store.h"
#include "support/core_harness.h"
#include "support/fake_driver.h"

namespace nowcalls::engine {
namespace {

constexpr size_t kFrameBytesMax = 100;

// Bytes of unsigned numbers, big endian.
template <typename... T>
std::string Bytes(T... values) {
  std::string bytes;
  const auto put = [&bytes](auto value) {
    char buffer[sizeof(value)];
    StoreBigEndian(buffer, value);
    bytes.append(buffer, sizeof(value));
  };
  (put(values), ...);
  return bytes;
}

std::string Frame(const std::string& payload) {
  return Bytes(static_cast<uint16_t>(payload.size())) + payload;
}

// "Acquire one call of `flow`, and wait for room" and its answer.
std::string Acquire(uint32_t xid, uint64_t flow) { return Frame(Bytes(xid, flow)); }
std::string Answer(uint32_t xid, TokenStatus status) {
  return Frame(Bytes(xid, static_cast<uint8_t>(status)));
}

class Frames : public Protocol {
 public:
  Frames(core::Core* core, Outputs* outputs) : core_(core), outputs_(outputs) {}

  ProtocolKind kind() const override { return ProtocolKind::kSentinel; }
  Taken Take(Connection* connection, std::string_view input, const Visit& visit,
             std::string* why) override {
    if (to_skip_ > 0) return Skip(input.size());
    if (input.size() < 2) return {.outcome = Taken::Outcome::kIncomplete};
    const size_t size = LoadBigEndian<uint16_t>(input.data());
    if (size > kFrameBytesMax) {
      to_skip_ = 2 + size;
      return Skip(input.size());
    }
    if (input.size() < 2 + size) return {.outcome = Taken::Outcome::kIncomplete};
    if (size < 12) {
      *why = "sent a frame that is too short";
      AnswerRefused(connection, input, *why);
      return {.outcome = Taken::Outcome::kRefused};
    }
    static constexpr Cost kCost{.base = 2, .work = true};
    const InputWaits waits = WaitsFor(kCost, visit);
    if (waits != InputWaits::kNothing) return {.outcome = Taken::Outcome::kWaits, .waits = waits};
    Do(connection, visit, LoadBigEndian<uint32_t>(input.data() + 2),
       LoadBigEndian<uint64_t>(input.data() + 6));
    return {.bytes = 2 + size, .cost = &kCost};
  }
  void AnswerAcquire(Connection* connection, uint32_t tag,
                     const core::AcquireAnswer& answer) override {
    const bool granted = answer.status == TokenStatus::kOk;
    wire::OutputBuffer* out =
        granted ? outputs_->AfterCommit(connection) : outputs_->Immediate(connection);
    out->Append(Answer(tag, answer.status));
  }
  void AnswerRefused(Connection* connection, std::string_view /*input*/,
                     std::string_view /*why*/) override {
    outputs_->Immediate(connection)->Append(Answer(0, TokenStatus::kBadRequest));
  }

 private:
  Taken Skip(size_t arrived) {
    const size_t skipped = std::min(arrived, to_skip_);
    to_skip_ -= skipped;
    return {.bytes = skipped};
  }
  void Do(Connection* connection, const Visit& visit, uint32_t xid, uint64_t flow) {
    if (connection->session == core::kNoSession) {
      auto hello = core_->Hello(visit.step, {"default", std::nullopt, "@" + connection->peer.name});
      REQUIRE(hello.ok());
      connection->session = hello->session;
    }
    const auto answer =
        core_->Acquire(visit.step, connection->session,
                       {.flow = FlowId{static_cast<int64_t>(flow)}, .count = 1, .wait_ms = 1000},
                       {.owner = connection->id, .tag = xid});
    if (answer.has_value()) AnswerAcquire(connection, xid, *answer);
  }

  core::Core* const core_;
  Outputs* const outputs_;
  size_t to_skip_ = 0;
};

class FramesOnly : public Protocols {
 public:
  FramesOnly(core::Core* core, Outputs* outputs)
      : Protocols(nullptr, nullptr), core_(core), outputs_(outputs) {}
  std::unique_ptr<Protocol> Make(std::string_view bytes) override {
    if (bytes.empty() || bytes.front() > 3) return nullptr;
    return std::make_unique<Frames>(core_, outputs_);
  }

 private:
  core::Core* const core_;
  Outputs* const outputs_;
};

// The parts of an engine around one connection.
struct Machine {
  Machine() {
    REQUIRE(testing::LoadCore(&store, now, &core).ok());
    batches.SetNow(now);
    REQUIRE(testing::ReplaceRules(&core, batches.Step(), "default",
                                  testing::RulesJson({{.flow = 1, .count = 1}}))
                .ok());
    Commit();
  }
  std::string Send(std::string_view bytes) {
    inputs.TakeBytes(connection, bytes);
    inputs.Resume();
    return EndTurn();
  }
  std::string EndTurn() {
    outputs.FlushAll();
    inputs.BeginTurn();
    return std::exchange(driver.socket(connection->id).written, {});
  }
  std::string Commit() {
    REQUIRE(batches.Begin({.boottime_ms = now.ms, .wall_ms = now.ms, .boot_id = {}}, false) !=
            nullptr);
    inputs.lines()->AfterBegin();
    outputs.Committed(batches.End());
    return EndTurn();
  }

  Instant now{testing::CoreHarness::kStartMs};
  Limits limits;
  core::Core core{testing::HarnessOptions()};
  store::MemoryStore store{ledger::Format{.token_id_key = testing::HarnessOptions().token_id_key}};
  testing::FakeDriver driver;
  Batches batches{&core, limits};
  Connections connections;
  BufferPool buffers;
  Outputs outputs{limits, &driver, &connections, &batches, &buffers, &closing};
  LateAnswers late{&core, &connections, &outputs};
  Closing closing{&core, &driver, &batches, &inputs, &outputs, &late};
  FramesOnly protocols{&core, &outputs};
  Strangers strangers{limits, &connections, &closing};
  Inputs inputs{limits,     &core,    &driver, &connections, &batches,  &buffers,
                &protocols, &outputs, &late,   &closing,     &strangers};
  Connection* connection = connections.Add({.name = "10.0.0.1:7"});
};

TEST_CASE("another protocol's grant waits for its commit, and its refusal does not") {
  Machine m;
  CHECK(m.Send(Acquire(7, 1)).empty());
  CHECK(m.Commit() == Answer(7, TokenStatus::kOk));
  CHECK(m.Send(Acquire(8, 2)) == Answer(8, TokenStatus::kNoRuleExists));
}

TEST_CASE("another protocol's acquire that waited is answered late, by its own number") {
  Machine m;
  m.Send(Acquire(7, 1) + Acquire(8, 1));
  CHECK(m.Commit() == Answer(7, TokenStatus::kOk));
  CHECK(m.core.wait_queues().size() == 1);
  m.core.CloseQueues(m.batches.Step());
  m.late.Send();
  CHECK(m.EndTurn() == Answer(8, TokenStatus::kNotAvailable));
}

TEST_CASE("another protocol's frames may arrive in pieces, and oversized ones are skipped") {
  Machine m;
  const std::string bytes =
      Frame(std::string(kFrameBytesMax + 50, 'x')) + Acquire(9, 2) + Acquire(10, 2);
  std::string answers;
  for (const char& byte : bytes) answers += m.Send({&byte, 1});
  const std::string expected =
      Answer(9, TokenStatus::kNoRuleExists) + Answer(10, TokenStatus::kNoRuleExists);
  CHECK(answers == expected);
  CHECK(m.Send(bytes) == expected);
  CHECK(m.connection->open());
}

TEST_CASE("another protocol answers what it refuses, and then the connection is closed") {
  Machine m;
  CHECK(m.Send(Acquire(9, 2) + Frame("short") + Acquire(10, 2)) ==
        Answer(9, TokenStatus::kNoRuleExists) + Answer(0, TokenStatus::kBadRequest));
  CHECK(m.driver.socket(m.connection->id).closed);
  CHECK(m.driver.TakeLog() ==
        "warn: connection 10.0.0.1:7 sent a frame that is too short; closing it\n");
}

TEST_CASE("another protocol's work waits for a turn that has room for it") {
  Machine m;
  std::string bytes;
  std::string expected;
  constexpr uint32_t kFrames = 3 * kWorkPerTurn / 2;
  for (uint32_t xid = 1; xid <= kFrames; ++xid) {
    bytes += Acquire(xid, 2);
    expected += Answer(xid, TokenStatus::kNoRuleExists);
  }
  std::string answers = m.Send(bytes);
  CHECK(answers.size() < expected.size());
  CHECK(m.connection->input_waits == InputWaits::kForWork);
  CHECK_FALSE(m.driver.socket(m.connection->id).reading);
  for (int turns = 0; turns < 100'000 && m.connection->input_waits != InputWaits::kNothing;
       ++turns) {
    m.inputs.Resume();
    answers += m.EndTurn();
  }
  CHECK((answers == expected));
  CHECK(m.driver.socket(m.connection->id).reading);
}

}  // namespace
}  // namespace nowcalls::engine
