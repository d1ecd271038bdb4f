// Bytes of clients through the splitter, the decoders, the engine and the core, onto a store in
// memory.
//
// The input is a script. Each step is a byte, of which the low three bits say what happens, the
// next two to which of four connections, and the others how; and what it needs behind it:
//
//   0   a length (one byte) and so many bytes, which the connection sends
//   1   what a request is made of (wire_requests.h), which the connection sends; at once, or but
//       for its last bytes, which come before what is sent next
//   2   a method, a length and so many bytes: a request with these parameters
//   3   a turn of the loop; or a peer stops reading, or reads on; the disk is full, or is not; a
//       backup ends
//   4   a commit begins or ends
//   5   one byte: time passes, up to half a minute
//   6   the connection goes and another comes; or it says that it sends no more
//   7   all comes to rest; or the server is stopped, or killed, and started again
//
// Every reply must be a message, and none may tell of a mistake of the server. A connection that
// begins as Sentinel's do is answered in frames (sentinel_target.cc). To a connection that has sent
// nothing but sound requests each is the reply to one that has none yet. At rest all have one, but
// acquires that wait and a backup. What the core counts must add up, and what is committed must
// be what a restart finds.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "core/books.h"
#include "core/tables/wait_queues.h"
#include "fuzz/byte_source.h"
#include "fuzz/targets.h"
#include "fuzz/wire_requests.h"
#include "support/engine_harness.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::fuzz {
namespace {

using testing::EngineHarness;
using testing::EngineReply;
using wire::Method;

constexpr size_t kConnections = 4;
// They take longest, and the later ones of a script are like the first.
constexpr int kRestartsMax = 2;

Limits SmallLimits() {
  Limits limits;
  limits.connections_max = kConnections + 1;
  limits.sessions_max = 6;
  limits.rules_max = 8;
  limits.namespaces_max = 4;
  limits.tokens_max = 12;
  limits.requests_in_flight_max = 8;
  limits.waiters_per_rule_max = 4;
  limits.waiters_max = 6;
  limits.waiters_per_connection_max = 4;
  limits.cancels_max = 6;
  limits.cancels_per_session_max = 4;
  limits.listings_max = 3;
  limits.listings_per_connection_max = 2;
  limits.history_max = 5;
  limits.input_total_bytes_max = 4096;
  limits.output_bytes_max = 8192;
  limits.output_total_bytes_max = 12'288;
  limits.batch_bytes_max = 2048;
  return limits;
}

struct Client {
  engine::ConnectionId id = 0;
  // Whether all that it has sent are sound requests.
  bool sound = true;
  bool begun = false;                  // It has sent something,
  bool frames = false;                 // which begins as Sentinel's frames do.
  std::map<uint32_t, Method> asked{};  // By msgid; those that have no reply yet.
  std::string held_back{};             // The last bytes of a request.
  uint32_t held_msgid = 0;             // Its msgid.
};

class Script {
 public:
  explicit Script(std::string_view input)
      : input_(input),
        h_(SmallLimits(), {{.flow = 1, .count = 3, .refuse_strategy = 3},
                           {.flow = 111, .count = 4, .max_per_client = 2}}) {
    h_.driver().cluster = ClusterOfTwo();
    Connect();
  }

  void Run() {
    while (!input_.empty()) {
      Step(input_.Byte());
      ReplaceClosed();
    }
    Rest();
    if (h_.core().books().tokens().size() > 0) Restart();
  }

 private:
  void Connect() {
    for (Client& client : clients_) client = {.id = h_.Connect()};
  }

  void Step(uint8_t step) {
    Client& client = clients_[step / 8 % kConnections];
    const int how = step / 32;
    switch (step % 8) {
      case 0: return SendBytes(&client);
      case 1: return Ask(&client, MakeRequest(NextRequest(), &input_), how % 2 == 1);
      case 2: return AskWith(&client);
      case 3: return Outside(&client, how);
      case 4: return Commit();
      case 5: return Pass(input_.Byte());
      case 6: return how >= 4 ? End(&client) : Replace(&client);
      default: return RestOrRestart(how);
    }
  }

  void RestOrRestart(int how) {
    if (how < 4 || restarts_ == kRestartsMax) return Rest();
    ++restarts_;
    if (how == 7) return Kill();
    Rest(how == 5);
    Restart();
  }

  RequestContext NextRequest() {
    return {.msgid = ++msgid_, .next_fence = h_.core().books().next_fence()};
  }

  void SendBytes(Client* client) {
    SendHeldBack(client);
    client->sound = false;
    Send(client, input_.Sized());
  }

  void Send(Client* client, std::string_view bytes) {
    if (!bytes.empty() && !std::exchange(client->begun, true)) {
      client->frames = static_cast<uint8_t>(bytes.front()) <= wire::sentinel::kFirstByteMax;
    }
    h_.Send(client->id, bytes);
  }

  void AskWith(Client* client) {
    SendHeldBack(client);
    client->sound = false;
    const uint8_t method = input_.Byte();
    Send(client, MakeRequestOf(NextRequest(), method, input_.Sized()).bytes);
  }

  void Ask(Client* client, const MadeRequest& made, bool hold_back) {
    SendHeldBack(client);
    // What is not complete may be answered too: that it is too slow, or comes to an end.
    if (made.answered.has_value()) client->asked[msgid_] = *made.answered;
    const size_t at = hold_back ? input_.Byte() % made.bytes.size() : made.bytes.size();
    client->held_back = made.bytes.substr(at);
    client->held_msgid = msgid_;
    if (at > 0) Send(client, made.bytes.substr(0, at));
  }

  void SendHeldBack(Client* client) {
    if (client->held_back.empty()) return;
    Send(client, std::exchange(client->held_back, {}));
  }

  // Its acquires that wait are not answered.
  void End(Client* client) {
    client->sound = false;
    h_.engine().OnEndOfInput(client->id, h_.now());
  }

  // What neither clients nor the store do.
  void Outside(Client* client, int how) {
    const bool other = how >= 4;
    switch (how % 4) {
      case 1: return other ? ReadOn(client) : static_cast<void>(Socket(*client).stuck = true);
      case 2: return h_.engine().OnDiskSpace(other ? uint64_t{1} << 40 : 0);
      case 3: return EndBackup(other);
      default: return h_.Turn();
    }
  }

  void ReadOn(Client* client) {
    testing::FakeDriver::Socket& socket = Socket(*client);
    if (!std::exchange(socket.stuck, false)) return;
    socket.kept = 0;
    h_.engine().OnSent(client->id, 0, h_.now());
  }

  void EndBackup(bool made) {
    if (!h_.driver().backup.has_value()) return;
    const engine::ConnectionId asker = h_.driver().backup->asker;
    h_.driver().backup.reset();
    if (made) return h_.engine().OnBackupDone(asker, wire::BackupReply{.tokens = 1}, h_.now());
    h_.engine().OnBackupDone(asker, Status::ResourceExhausted("no room"), h_.now());
  }

  // In steps of a loop, or at once, as for a server that was stopped.
  void Pass(uint8_t time) {
    // Who is too slow is heard no more, and what it asked is dropped; if it waits for a backup, it
    // stays connected all the same.
    for (Client& client : clients_) {
      if (!client.held_back.empty() && AwaitsBackup(client)) client.sound = false;
    }
    if (time < 16) return h_.Pass(time * 60);
    h_.Sleep(time * 120);
    h_.Settle();
  }

  void Commit() {
    if (!h_.BeginCommit() && h_.driver().commit != nullptr) h_.FinishCommit();
  }

  testing::FakeDriver::Socket& Socket(const Client& client) {
    return h_.driver().socket(client.id);
  }

  void Replace(Client* client) {
    TakeReplies(client);
    h_.Disconnect(client->id);
    *client = {.id = h_.Connect()};
  }

  void ReplaceClosed() {
    for (Client& client : clients_) {
      if (Socket(client).closed) Replace(&client);
    }
  }

  void TakeFrames(const Client& client) {
    const std::string bytes = std::exchange(Socket(client).written, {});
    wire::sentinel::Response response;
    for (std::string_view left = bytes; !left.empty();) {
      REQUIRE(wire::sentinel::TakeResponse(&left, &response) == wire::sentinel::Answer::kWhole);
    }
  }

  void TakeReplies(Client* client) {
    if (client->frames) return TakeFrames(*client);
    for (const EngineReply& reply : h_.TakeReplies(client->id)) {
      if (reply.error.has_value()) REQUIRE(reply.error->code != wire::ErrorCode::kInternal);
      if (!client->sound) continue;
      const auto asked = client->asked.find(reply.msgid);
      REQUIRE((asked != client->asked.end()));
      CheckReply(asked->second, reply);
      client->asked.erase(asked);
    }
  }

  void Rest(bool drained = false) {
    if (drained) h_.engine().BeginShutdown(h_.now());
    h_.Settle();
    ReplaceClosed();
    h_.Settle();
    REQUIRE(testing::FindWrongBook(h_.core()) == "");
    size_t waiting = 0;
    for (Client& client : clients_) {
      TakeReplies(&client);
      if (client.sound) waiting += CountWaiting(client);
    }
    REQUIRE(waiting <= h_.core().wait_queues().size());
  }

  static bool AwaitsBackup(Method method) {
    return method == Method::kBackup || method == Method::kCopy;
  }
  static bool AwaitsBackup(const Client& client) {
    return std::any_of(client.asked.begin(), client.asked.end(),
                       [](const auto& asked) { return AwaitsBackup(asked.second); });
  }

  // Of a client to which nothing is on its way.
  size_t CountWaiting(const Client& client) {
    size_t waiting = 0;
    for (const auto& [msgid, method] : client.asked) {
      if (!client.held_back.empty() && msgid == client.held_msgid) continue;
      if (method == Method::kAcquire || method == Method::kAcquireAll) {
        ++waiting;
      } else {
        REQUIRE(AwaitsBackup(method));
        REQUIRE(h_.driver().backup.has_value());
      }
    }
    return waiting;
  }

  // REQUIRES: everything is at rest.
  void Restart() {
    const std::string before = testing::TokensText(h_.core());
    h_.Restart();
    CheckStarted(before);
  }

  // What is committed is what there is.
  void Kill() {
    const std::string before = testing::TokensText(testing::ReadLedger(&h_.store()));
    h_.Restart();
    CheckStarted(before);
  }

  void CheckStarted(const std::string& tokens) {
    REQUIRE(testing::TokensText(h_.core()) == tokens);
    REQUIRE(testing::TokensText(testing::ReadLedger(&h_.store())) == tokens);
    REQUIRE(testing::FindWrongBook(h_.core()) == "");
    Connect();
  }

  ByteSource input_;
  EngineHarness h_;
  std::array<Client, kConnections> clients_{};
  uint32_t msgid_ = 0;
  int restarts_ = 0;
};

}  // namespace

void FuzzWire(std::string_view input) {
  // Longer scripts find nothing that shorter ones do not, later.
  constexpr size_t kBytesMax = 2048;
  Script(input.substr(0, kBytesMax)).Run();
}

}  // namespace nowcalls::fuzz
