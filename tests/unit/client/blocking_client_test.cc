#include "client/blocking_client.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "support/fake_server.h"
#include "support/poll_until.h"

namespace nowcalls::client {
namespace {

using testing::FakeServer;
using Peer = FakeServer::Peer;
using wire::Envelope;
using wire::ErrorCode;
using wire::Method;
using wire::OutputBuffer;

constexpr int64_t kPatientMs = 30'000;
constexpr int64_t kImpatientMs = 500;

std::unique_ptr<BlockingClient> Connect(const FakeServer& server, int64_t timeout_ms = kPatientMs) {
  Result<std::unique_ptr<BlockingClient>> client =
      BlockingClient::Connect(server.address(), timeout_ms);
  REQUIRE(client.ok());
  return *std::move(client);
}

// A server that answers each request with what `answer` writes.
template <typename Answer>
std::function<void(Peer*)> Answering(Answer answer) {
  return [answer](Peer* peer) {
    Envelope request;
    while (peer->Take(&request)) {
      peer->Answer([&](OutputBuffer* out) { answer(request, out); });
    }
  };
}

// A server that answers the first request with these bytes and then waits for the close.
std::function<void(Peer*)> Sending(const std::string& bytes) {
  return [bytes](Peer* peer) {
    Envelope request;
    peer->Take(&request);
    peer->Send(bytes);
    peer->AwaitClose();
  };
}

void AnswerCall(const Envelope& request, OutputBuffer* out) {
  wire::RequestError error;
  wire::AcquireParams acquire;
  wire::TokenParams token;
  switch (request.method) {
    case Method::kHello: return wire::EncodeHello(request.msgid, {"1.2.3", 12, 3, 1}, out);
    case Method::kPing: return wire::EncodePing(request.msgid, 77, out);
    case Method::kAcquire:
      CHECK(wire::DecodeAcquire(request.params, &acquire, &error));
      return wire::EncodeAcquire(request.msgid,
                                 {.status = TokenStatus::kOk,
                                  .token_id = static_cast<uint64_t>(acquire.flow_id) + 1,
                                  .fence = 9,
                                  .hold_ms = static_cast<uint64_t>(acquire.count)},
                                 out);
    case Method::kKeep:
      CHECK(wire::DecodeToken(request.method, request.params, &token, &error));
      return wire::EncodeKeep(request.msgid,
                              {.status = TokenStatus::kOk, .hold_ms = token.token_id}, out);
    case Method::kRelease: return wire::EncodeStatus(request.msgid, TokenStatus::kReleaseOk, out);
    case Method::kReclaimClient: {
      wire::ReclaimClientParams params;
      CHECK(wire::DecodeReclaimClient(request.params, &params, &error));
      return wire::EncodeReclaimed(request.msgid, {params.limit, params.client_id == "worker-7"},
                                   out);
    }
    case Method::kReclaimFlow: {
      wire::ReclaimFlowParams params;
      CHECK(wire::DecodeReclaimFlow(request.params, &params, &error));
      return wire::EncodeReclaimed(request.msgid, {params.limit, false}, out);
    }
    case Method::kPurge: {
      wire::PurgeParams params;
      CHECK(wire::DecodePurge(request.params, &params, &error));
      return wire::EncodeReclaimed(request.msgid, {params.limit, false}, out);
    }
    case Method::kDrain: {
      wire::DrainParams params;
      CHECK(wire::DecodeDrain(request.params, &params, &error));
      return wire::EncodeDrain(
          request.msgid, {TokenStatus::kOk, static_cast<uint64_t>(params.flow_id), params.on}, out);
    }
    case Method::kReclaim:
      return wire::EncodeStatus(request.msgid, TokenStatus::kAlreadyRelease, out);
    default:
      return wire::EncodeError(request.msgid, {ErrorCode::kInternal, "not in this test"}, out);
  }
}

TEST_CASE("calls go to the server and their answers come back") {
  const FakeServer server(Answering(AnswerCall));
  const auto client = Connect(server);
  const Result<wire::HelloReply> hello = client->Hello("shop", "worker-7");
  REQUIRE(hello.ok());
  CHECK(hello->server_version == "1.2.3");
  CHECK(hello->resumed_tokens == 1);
  CHECK(*client->Ping() == 77);
  const Result<wire::AcquireReply> acquired = client->Acquire({110, 4, false});
  REQUIRE(acquired.ok());
  CHECK(acquired->token_id == 111);
  CHECK(acquired->hold_ms == 4);
  CHECK(client->Keep(5)->hold_ms == 5);
  CHECK(*client->Release(5) == TokenStatus::kReleaseOk);
  CHECK(*client->Reclaim(5, "test") == TokenStatus::kAlreadyRelease);
  CHECK(*client->ReclaimClient({"shop", "worker-7", "test", 10}) == wire::ReclaimedReply{10, true});
  CHECK(*client->ReclaimFlow({7, "test", 11}) == wire::ReclaimedReply{11, false});
  CHECK(*client->Purge({7, 12}) == wire::ReclaimedReply{12, false});
  CHECK(*client->Drain({7, true}) == wire::DrainReply{TokenStatus::kOk, 7, 1});
  // The answer to hello is the caller's own, not a view of bytes that are gone.
  CHECK(hello->server_version == "1.2.3");
}

TEST_CASE("listings come back as rows") {
  const FakeServer server(Answering([](const Envelope& request, OutputBuffer* out) {
    const uint32_t id = request.msgid;
    wire::FlowRow flow;
    flow.flow_id = 5;
    wire::TokenRow token;
    token.token_id = 6;
    wire::SessionRow session;
    session.session = 7;
    if (request.method == Method::kFlow) return wire::EncodeFlow(id, flow, out);
    if (request.method == Method::kFlows) return wire::EncodeFlowPage(id, {flow, flow}, 8, out);
    if (request.method == Method::kTokens) return wire::EncodeTokenPage(id, {token}, 9, out);
    if (request.method == Method::kSessions) return wire::EncodeSessionPage(id, {session}, 0, out);
    wire::HistoryRow end;
    end.sequence = 8;
    if (request.method == Method::kHistory) return wire::EncodeHistoryPage(id, {end}, 8, out);
    return wire::EncodeRulesLoad(id, 3, out);
  }));
  const auto client = Connect(server);
  CHECK(client->Flow({5})->flow_id == 5);
  const auto flows = client->Flows({});
  REQUIRE(flows.ok());
  CHECK(flows->rows.size() == 2);
  CHECK(flows->next_cursor == 8);
  CHECK(client->Tokens({})->rows.at(0).token_id == 6);
  CHECK(client->Sessions({})->rows.at(0).session == 7);
  CHECK(client->History({})->rows.at(0).sequence == 8);
  CHECK(*client->RulesLoad("shop", "[]") == 3);
  CHECK(*client->Info() == "\x91\x03");
  CHECK(*client->RulesList({}) == "\x91\x03");
}

TEST_CASE("an answer of megabytes arrives whole") {
  wire::FlowRow row;
  row.resource = std::string(kResourceBytesMax, 'r');
  const std::vector<wire::FlowRow> rows(kListRowsMax, row);
  const FakeServer server(Answering([&rows](const Envelope& request, OutputBuffer* out) {
    wire::EncodeFlowPage(request.msgid, rows, 0, out);
  }));
  const auto page = Connect(server)->Flows({kListRowsMax, 0});
  REQUIRE(page.ok());
  CHECK(page->rows == rows);
}

TEST_CASE("what the server finds wrong with a request says what the caller may do") {
  const std::pair<ErrorCode, StatusCode> codes[] = {
      {ErrorCode::kMalformed, StatusCode::kInvalidArgument},
      {ErrorCode::kUnknownMethod, StatusCode::kInvalidArgument},
      {ErrorCode::kBadParams, StatusCode::kInvalidArgument},
      {ErrorCode::kHelloState, StatusCode::kInvalidArgument},
      {ErrorCode::kUnsupported, StatusCode::kInvalidArgument},
      {ErrorCode::kConflict, StatusCode::kAlreadyExists},
      {ErrorCode::kOverloaded, StatusCode::kResourceExhausted},
      {ErrorCode::kInternal, StatusCode::kUnavailable},
  };
  for (const auto& [code, expected] : codes) {
    const FakeServer server(Answering([code = code](const Envelope& request, OutputBuffer* out) {
      wire::EncodeError(request.msgid, {code, "acquire: no"}, out);
    }));
    const auto client = Connect(server);
    const Status status = client->Acquire({1, 1, false}).status();
    CHECK(status.code() == expected);
    CHECK(status.message() == std::string(wire::ErrorCodeName(code)) + ": acquire: no");
    // Such an error does not end the connection.
    CHECK(client->Ping().status().code() == expected);
  }
}

TEST_CASE("silence ends in an unknown outcome, and then the client is closed") {
  const FakeServer server([](Peer* peer) { peer->AwaitClose(); });
  const auto client = Connect(server, kImpatientMs);
  const Status status = client->Acquire({1, 1, false}).status();
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
  CHECK(status.message() ==
        "no answer from " + server.address() + " within 500 ms (is that a nowcalls-server?)");
  const Status later = client->Ping().status();
  CHECK(later.code() == StatusCode::kUnavailable);
  CHECK(later.message() == "the connection to " + server.address() + " is closed");
}

TEST_CASE("a peer that sends without pause does not keep its caller") {
  const FakeServer server([](Peer* peer) {
    Envelope request;
    peer->Take(&request);
    std::string notices;
    for (int i = 0; i < 1000; ++i) notices += "\x93\x02\xa1x\x90";  // [2, "x", []]
    while (peer->Send(notices)) {
    }
  });
  const auto client = Connect(server, kImpatientMs);
  CHECK(client->Ping().status().code() == StatusCode::kOutcomeUnknown);
}

TEST_CASE("who answered before is a server, though silent now") {
  const FakeServer server([](Peer* peer) {
    Envelope request;
    peer->Take(&request);
    peer->Answer([&](OutputBuffer* out) { AnswerCall(request, out); });
    peer->AwaitClose();
  });
  const auto client = Connect(server, kImpatientMs);
  CHECK(client->Ping().ok());
  const Status status = client->Ping().status();
  CHECK(status.message() == "no answer from " + server.address() + " within 500 ms");
}

TEST_CASE("half an answer is no answer") {
  const FakeServer server(Sending(std::string("\x94\x01\x01\xc0", 4)));
  const Status status = Connect(server, kImpatientMs)->Ping().status();
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
  CHECK(status.message() == "no answer from " + server.address() + " within 500 ms");
}

TEST_CASE("a server that closes instead of answering leaves the outcome unknown") {
  const FakeServer server([](Peer* peer) {
    Envelope request;
    peer->Take(&request);
  });
  const Status status = Connect(server)->Acquire({1, 1, false}).status();
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
  CHECK(status.message() == "no answer from " + server.address() +
                                ": the connection was closed before it answered (does it speak "
                                "TLS only?)");
}

TEST_CASE("a secret is shown at once, and a refusal of it ends the connecting") {
  constexpr char kSecret[] = "nc-0123456789abcdef";
  std::string shown;
  bool refuses = false;
  const auto answer = [&](const Envelope& request, OutputBuffer* out) {
    if (request.method != Method::kIdentify) return AnswerCall(request, out);
    wire::IdentifyParams params;
    wire::RequestError error;
    REQUIRE(wire::DecodeIdentify(request.params, &params, &error));
    shown = params.secret;
    if (refuses) return wire::EncodeError(request.msgid, {ErrorCode::kPermission, "no"}, out);
    wire::EncodeIdentify(request.msgid, {.name = "checkout", .role = "client", .proof = "secret"},
                         out);
  };
  const auto connect = [&](const FakeServer& server) {
    return BlockingClient::Connect(
        {.address = server.address(), .timeout_ms = kPatientMs, .security = {.secret = kSecret}});
  };
  {
    const FakeServer server(Answering(answer));
    auto client = connect(server);
    REQUIRE(client.status().ToString() == "ok");
    CHECK(shown == kSecret);
    CHECK(*(*client)->Ping() == 77);
    const auto identity = (*client)->Identify("");
    REQUIRE(identity.ok());
    CHECK(identity->name == "checkout");
    CHECK_FALSE(identity->namespaces.has_value());
    CHECK(shown.empty());
    client->reset();
  }
  refuses = true;
  const FakeServer server(Answering(answer));
  const Status refused = connect(server).status();
  CHECK(refused.code() == StatusCode::kPermissionDenied);
  CHECK(refused.message() == "cannot talk to " + server.address() + ": PERMISSION: no");
}

TEST_CASE("a wrong secret, which is answered a second late, is told with a short timeout, too") {
  const FakeServer server([](Peer* peer) {
    Envelope request;
    peer->Take(&request);
    CHECK_FALSE(testing::PollUntil(kWrongSecretMs, [] { return false; }));
    peer->Answer([&](OutputBuffer* out) {
      wire::EncodeError(request.msgid, {ErrorCode::kPermission, "the secret is wrong"}, out);
    });
    peer->AwaitClose();
  });
  const auto client = BlockingClient::Connect(
      {.address = server.address(), .timeout_ms = kImpatientMs, .security = {.secret = "s3cret"}});
  CHECK(client.status().code() == StatusCode::kPermissionDenied);
  CHECK(client.status().message().ends_with("PERMISSION: the secret is wrong"));
}

TEST_CASE("a server that knows no secrets is taken as it is") {
  const FakeServer server(Answering([](const Envelope& request, OutputBuffer* out) {
    if (request.method != Method::kIdentify) return AnswerCall(request, out);
    wire::EncodeError(request.msgid, {ErrorCode::kUnknownMethod, "identify"}, out);
  }));
  auto client = BlockingClient::Connect({.address = server.address(),
                                         .timeout_ms = kPatientMs,
                                         .security = {.secret = "nc-0123456789abcdef"}});
  REQUIRE(client.status().ToString() == "ok");
  CHECK(*(*client)->Ping() == 77);
}

TEST_CASE("an answer that is not understood leaves the outcome unknown") {
  const std::pair<std::string, std::string> answers[] = {
      {std::string("\x94\x01\xc1", 3), "byte 0xc1 begins no MessagePack value"},
      {std::string("\x94\x01\x63\xc0\x91\x01", 6), "answer to msgid 99, which awaits none"},
      {std::string("\x94\x01\x01\xc0\x91\xa1x", 7), "answer: number must be an integer, got str"},
      {std::string("\x93\x01\xa1k\x90", 5), "notification: type must be 2 (notification)"},
  };
  for (const auto& [bytes, why] : answers) {
    const FakeServer server(Sending(bytes));
    const auto client = Connect(server);
    const Status status = client->Ping().status();
    CHECK(status.code() == StatusCode::kOutcomeUnknown);
    CHECK(status.message() == "answer of " + server.address() + " was not understood: " + why);
    CHECK(client->Ping().status().code() == StatusCode::kUnavailable);
  }
}

TEST_CASE("what answers with no message at all is no server, and has carried nothing out") {
  const FakeServer server(Sending("HTTP/1.1 400"));
  const auto client = Connect(server);
  const Status status = client->Acquire({1, 1, false}).status();
  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK(status.message() ==
        "what listens at " + server.address() +
            " does not look like a nowcalls-server: it speaks HTTP; the token port of a "
            "nowcalls-server is usually 18730; check HOST:PORT");
  CHECK(client->Ping().status().message() ==
        "the connection to " + server.address() + " is closed");
}

TEST_CASE("a server that answered before leaves the outcome unknown, whatever it sends") {
  const FakeServer server([](Peer* peer) {
    Envelope request;
    peer->Take(&request);
    peer->Answer([&](OutputBuffer* out) { AnswerCall(request, out); });
    peer->Take(&request);
    peer->Send("HTTP/1.1 400");
    peer->AwaitClose();
  });
  const auto client = Connect(server);
  CHECK(client->Ping().ok());
  const Status status = client->Acquire({1, 1, false}).status();
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
  CHECK(status.message().starts_with("answer of " + server.address() + " was not understood: "));
}

TEST_CASE("a request that no message can hold is refused before it is sent") {
  const FakeServer server(Answering(AnswerCall));
  const auto client = Connect(server);
  const Status status = client->RulesLoad("shop", std::string(kMessageBytesMax, ' ')).status();
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(*client->Ping() == 77);
}

TEST_CASE("nobody listening is told with the address and what to check") {
  std::string address;
  {
    const FakeServer gone([](Peer* peer) { peer->AwaitClose(); });
    address = gone.address();
  }
  const Status status = BlockingClient::Connect(address, kPatientMs).status();
  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK(status.message() ==
        "cannot reach " + address + ": Connection refused; is nowcalls-server running there?");
}

TEST_CASE("an address of another form is refused") {
  CHECK(BlockingClient::Connect("localhost", 1).status().code() == StatusCode::kInvalidArgument);
  CHECK(BlockingClient::Connect("localhost:0", 1).status().message() ==
        "'localhost:0': port 0 is no server's");
}

}  // namespace
}  // namespace nowcalls::client
