// Bytes of Sentinel's clients through the splitter, the decoders, the engine and the core, onto a
// store in memory.
//
// The input is a script. Each step is a byte, and what the step needs behind it. The low three bits
// say what happens, the next bit to which of two connections:
//
//   0   a length (one byte) and so many bytes, which the connection sends
//   1   three bytes: type, flow or token, count; which makes a sound request
//   2   a number of values and a length (two bytes) and so many bytes: a PARAM_FLOW with them
//   3   a turn of the loop
//   4   a commit begins or ends
//   5   one byte: time passes, up to 256 ms
//   6   the connection goes and another comes
//   7   all comes to rest; with the highest bit set the server is killed and started again
//
// A splitter of its own finds out which frames must be answered, with which xid and type. At rest
// each has been answered once, but acquires that wait, and the answer has the form of its type. No
// token is given out twice or released twice, and what the core counts adds up.
#include <doctest/doctest.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "core/books.h"
#include "core/tables/wait_queues.h"
#include "fuzz/byte_source.h"
#include "fuzz/targets.h"
#include "support/engine_harness.h"
#include "support/only_flow.h"

namespace nowcalls::fuzz {
namespace {

constexpr size_t kConnections = 2;
constexpr int kRestartsMax = 2;
constexpr size_t kPayloadMax = 1022;

enum Type : int8_t { kPing, kFlow, kParamFlow, kAcquire, kRelease, kKeep };

template <typename... T>
std::string Packed(T... values) {
  std::string bytes;
  (AppendBigEndian(&bytes, values), ...);
  return bytes;
}

std::string FrameOf(const std::string& payload) {
  return Packed(static_cast<uint16_t>(payload.size())) + payload;
}

// What one connection has sent, and what it must be answered.
class Expected {
 public:
  void Sent(std::string_view bytes) {
    stream_ += bytes;
    while (stream_.size() >= 2) {
      const size_t size = LoadBigEndian<uint16_t>(stream_.data());
      const size_t answered_at = 2 + (size > kPayloadMax ? kHeadBytes : size);
      if (!added_ && stream_.size() >= answered_at) {
        const std::string_view stream = stream_;
        if (size > 0) Add(stream.substr(2, answered_at - 2));
        added_ = true;
      }
      if (stream_.size() < 2 + size) return;
      stream_.erase(0, 2 + size);
      added_ = false;
    }
  }

  void Answered(uint32_t xid, int8_t type) {
    const auto found = answers_.find({xid, type});
    REQUIRE(found != answers_.end());
    answers_.erase(found);
  }

  size_t open() const { return answers_.size(); }

 private:
  void Add(std::string_view payload) {
    const uint32_t xid = payload.size() < 4 ? 0 : LoadBigEndian<uint32_t>(payload.data());
    answers_.insert({xid, payload.size() < 5 ? int8_t{0} : static_cast<int8_t>(payload[4])});
  }

  static constexpr size_t kHeadBytes = 5;

  std::string stream_;
  bool added_ = false;  // The answer to the frame that the stream begins with.
  std::multiset<std::pair<uint32_t, int8_t>> answers_;
};

class SentinelScript {
 public:
  explicit SentinelScript(std::string_view script)
      : input_(script),
        h_(Limits(), {{.flow = 1, .count = 3, .refuse_strategy = 3, .max_queueing_ms = 1000},
                      {.flow = 2, .count = 2, .avg_local = true},
                      {.flow = 3, .count = 5, .shadow = true}}) {
    for (size_t i = 0; i < kConnections; ++i) Connect(i);
  }

  void Run() {
    while (!input_.empty()) Step(input_.Byte());
    Rest();
    h_.Pass(60'000);
    CheckSums();
    CHECK(h_.core().books().tokens().size() == 0);
  }

 private:
  void Step(uint8_t step) {
    const size_t at = step >> 3 & 1;
    switch (step & 7) {
      case 0: Send(at, input_.Sized()); break;
      case 1: Send(at, SoundRequest()); break;
      case 2: Send(at, ParamRequest()); break;
      case 3: h_.Turn(); break;
      case 4:
        if (h_.driver().commit != nullptr) {
          h_.FinishCommit();
        } else {
          h_.BeginCommit();
        }
        break;
      case 5: h_.Pass(input_.Byte() + 1); break;
      case 6:
        h_.Disconnect(ids_[at]);
        Connect(at);
        break;
      default:
        Rest();
        if (step >= 128 && restarts_++ < kRestartsMax) Restart();
    }
    TakeAnswers();
  }

  void Connect(size_t at) {
    ids_[at] = h_.Connect("10.0.0.1:" + std::to_string(++ports_));
    expected_[at] = Expected();
    begun_[at] = false;
  }

  // A connection that begins with another byte does not speak Sentinel's protocol.
  void Send(size_t at, std::string_view bytes) {
    if (bytes.empty() || h_.driver().socket(ids_[at]).closed) return;
    if (!begun_[at] && static_cast<uint8_t>(bytes[0]) > 3) return;
    begun_[at] = true;
    expected_[at].Sent(bytes);
    h_.Send(ids_[at], bytes);
  }

  std::string SoundRequest() {
    const auto type = static_cast<int8_t>(input_.Byte() % 6);
    const uint8_t which = input_.Byte();
    const uint8_t count = input_.Byte();
    std::string data;
    if (type == kPing) {
      const std::string name = which % 2 == 0 ? "default" : "other";
      data = Packed(static_cast<int32_t>(name.size())) + name;
    } else if (type == kRelease || type == kKeep) {
      data = Packed(TokenAt(which));
    } else if (type == kParamFlow) {
      data = Packed(int64_t{which % 5}, static_cast<int32_t>(count), int32_t{1}, int8_t{0},
                    int32_t{5});
    } else {
      data = Packed(int64_t{which % 5}, static_cast<int32_t>(count % 8),
                    static_cast<uint8_t>(count >> 7));
    }
    return FrameOf(Packed(++xid_, type) + data);
  }

  std::string ParamRequest() {
    const auto values = static_cast<int8_t>(input_.Byte());
    const std::string bytes(input_.Sized());
    return FrameOf(Packed(++xid_, static_cast<int8_t>(kParamFlow), int64_t{1}, int32_t{1},
                          static_cast<int32_t>(values)) +
                   bytes);
  }

  uint64_t TokenAt(size_t index) const {
    if (tokens_.empty()) return index;
    auto token = tokens_.begin();
    std::advance(token, index % tokens_.size());
    return *token;
  }

  void TakeAnswers() {
    for (size_t at = 0; at < kConnections; ++at) {
      const std::string bytes = std::exchange(h_.driver().socket(ids_[at]).written, {});
      for (std::string_view rest = bytes; !rest.empty();) {
        REQUIRE(rest.size() >= 8);
        const size_t size = LoadBigEndian<uint16_t>(rest.data());
        REQUIRE(rest.size() >= 2 + size);
        TakeAnswer(at, rest.substr(2, size));
        rest.remove_prefix(2 + size);
      }
    }
  }

  void TakeAnswer(size_t at, std::string_view payload) {
    const auto xid = LoadBigEndian<uint32_t>(payload.data());
    const auto type = static_cast<int8_t>(payload[4]);
    const auto status = static_cast<TokenStatus>(payload[5]);
    const std::string_view data = payload.substr(6);
    CHECK(TokenStatusName(status) != "UNKNOWN");
    if (!h_.driver().socket(ids_[at]).closed) expected_[at].Answered(xid, type);
    const bool ok = status == TokenStatus::kOk;
    if (type == kPing) {
      CHECK(data.size() == (ok ? 1 : 0));
    } else if (type == kFlow || type == kParamFlow) {
      CHECK(data.size() == 8);
    } else if (type == kAcquire) {
      REQUIRE(data.size() == 8);
      const auto token = LoadBigEndian<uint64_t>(data.data());
      CHECK((token != 0) == ok);
      if (ok) CHECK(tokens_.insert(token).second);
    } else {
      CHECK(data.empty());
      if (status == TokenStatus::kReleaseOk) ++released_;
    }
    CHECK(released_ <= tokens_.size());
  }

  void Rest() {
    h_.Settle();
    TakeAnswers();
    // The longest wait of an acquire.
    h_.Pass(Limits().sentinel_wait_ms_max + 1);
    TakeAnswers();
    CHECK(h_.core().wait_queues().size() == 0);
    for (size_t at = 0; at < kConnections; ++at) {
      if (!h_.driver().socket(ids_[at]).closed) CHECK(expected_[at].open() == 0);
    }
    CheckSums();
  }

  void CheckSums() {
    uint64_t sum = 0;
    const core::FlowTable& flows = h_.core().flows();
    for (const int64_t id : {1, 2, 3}) {
      sum += static_cast<uint64_t>(flows.at(OnlyFlow(flows, id)).lane.now_calls);
    }
    CHECK(sum == h_.core().books().live_count_sum());
    CHECK(flows.at(OnlyFlow(flows, 1)).lane.now_calls <= 3);
  }

  void Restart() {
    const uint64_t before = h_.core().books().live_count_sum();
    h_.Restart();
    CHECK(h_.core().books().live_count_sum() == before);
    for (size_t i = 0; i < kConnections; ++i) Connect(i);
  }

  ByteSource input_;
  testing::EngineHarness h_;
  std::array<engine::ConnectionId, kConnections> ids_{};
  std::array<Expected, kConnections> expected_;
  std::array<bool, kConnections> begun_{};
  std::set<uint64_t> tokens_;
  size_t released_ = 0;
  uint32_t xid_ = 0;
  int ports_ = 0;
  int restarts_ = 0;
};

}  // namespace

void FuzzSentinel(std::string_view input) { SentinelScript(input).Run(); }

}  // namespace nowcalls::fuzz
