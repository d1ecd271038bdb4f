// Who a connection is: secrets, right and wrong; another list of principals; and the bounds of
// those that nobody knows.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/books.h"
#include "engine/rpc/methods.h"
#include "support/engine_harness.h"
#include "wire/admin_messages.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using access::Role;
using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::PrincipalEntry;
using wire::Method;

constexpr char kSecret[] = "wJalr-XUtnF-EMI";
constexpr char kWrong[] = "PERMISSION: identify: the secret is wrong";

std::string IdentifyRequest(uint32_t msgid, std::string_view secret = {}) {
  wire::OutputBuffer out;
  wire::EncodeIdentifyRequest(msgid, secret, &out);
  return std::string(out.view());
}

// "checkout client secret shop,shop-*"
std::string Known(const EngineReply& reply) {
  if (reply.error) return reply.ErrorText();
  const auto read = wire::DecodeIdentifyReply(reply.result);
  REQUIRE(read.ok());
  std::string text = read->name + " " + read->role + " " + read->proof;
  if (!read->namespaces.has_value()) return text + " *";
  for (const std::string& pattern : *read->namespaces) text += " " + pattern;
  return text;
}

void SetCheckout(EngineHarness* h) {
  h->SetAccess({PrincipalEntry("checkout", Role::kClient, {{"default"}}, kSecret)});
  h->Settle();
  h->driver().TakeLog();
}

bool IsClosed(EngineHarness* h, ConnectionId id) { return h->driver().socket(id).closed; }

TEST_CASE("a secret makes a connection somebody, at once and for what follows in the pipeline") {
  EngineHarness h;
  SetCheckout(&h);
  const ConnectionId id = h.Connect();
  CHECK(Known(h.Call(id, IdentifyRequest(1))) == " anybody nothing *");
  h.Send(id, IdentifyRequest(2, kSecret) + HelloRequest(3, "default", "a") + AcquireRequest(4, 1));
  h.Settle();
  const auto replies = h.TakeReplies(id);
  REQUIRE(replies.size() == 3);
  CHECK(Known(replies[0]) == "checkout client secret default");
  CHECK(replies[2].acquire().status == TokenStatus::kOk);
  CHECK(Known(h.Call(id, IdentifyRequest(5))) == "checkout client secret default");
}

TEST_CASE("without an access file everybody may do everything, and a secret is ignored") {
  EngineHarness h;
  CHECK(Known(h.Call(h.Connect("127.0.0.1:5"), IdentifyRequest(1, "any"))) ==
        "127.0.0.1:5 administrator open *");
}

TEST_CASE("a secret in the clear is refused with the reason, and does not count as wrong") {
  EngineHarness h;
  SetCheckout(&h);
  const ConnectionId id = h.Connect("192.0.2.1:5");
  for (int i = 0; i < 9; ++i) {
    CHECK(Known(h.Call(id, IdentifyRequest(1, kSecret)))
              .starts_with("PERMISSION: identify: secrets are taken over TLS"));
  }
  CHECK_FALSE(IsClosed(&h, id));
}

TEST_CASE("a handshake makes a connection the principal of its certificate") {
  EngineHarness h;
  SetCheckout(&h);
  net::Peer peer{.name = "192.0.2.1:5", .host = "192.0.2.1"};
  const ConnectionId id = h.Connect(peer);
  peer.encrypted = true;
  peer.certificate = "checkout";
  h.engine().OnIdentity(id, peer, h.now());
  CHECK(Known(h.Call(id, IdentifyRequest(1))) == "checkout client certificate default");
  h.Pass(kStrangerMsMax + 1000);
  CHECK_FALSE(IsClosed(&h, id));
}

TEST_CASE("a wrong secret is answered a second later, and nothing is read or done meanwhile") {
  EngineHarness h;
  SetCheckout(&h);
  const ConnectionId id = h.Connect();
  h.Send(id, IdentifyRequest(1, "wrong") + PlainRequest(2, Method::kPing));
  h.Settle();
  CHECK_FALSE(h.driver().socket(id).reading);
  h.Pass(kWrongSecretMs - 50);
  CHECK(h.TakeReplies(id).empty());
  h.Pass(50);
  const auto replies = h.TakeReplies(id);
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].ErrorText() == kWrong);
  CHECK(replies[1].ErrorText() == "ok");
  CHECK(h.driver().socket(id).reading);
  CHECK(Known(h.Call(id, IdentifyRequest(3, kSecret))) == "checkout client secret default");
}

TEST_CASE("the fifth wrong secret ends the connection, behind its answer") {
  EngineHarness h;
  SetCheckout(&h);
  // Somebody by certificate may guess no more than a stranger.
  const ConnectionId id = h.ConnectAs("checkout");
  for (uint32_t i = 1; i <= kWrongSecretsMax; ++i) {
    CHECK_FALSE(IsClosed(&h, id));
    h.Send(id, IdentifyRequest(i, "wrong-" + std::to_string(i)));
    h.Pass(kWrongSecretMs);
    const auto replies = h.TakeReplies(id);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].ErrorText() == kWrong);
  }
  CHECK(IsClosed(&h, id));
}

TEST_CASE("a peer that ends its side learns no earlier that its secret was wrong") {
  EngineHarness h;
  SetCheckout(&h);
  const ConnectionId id = h.Connect();
  h.Send(id, IdentifyRequest(1, "wrong"));
  h.engine().OnEndOfInput(id, h.now());
  h.Pass(kWrongSecretMs - 50);
  CHECK_FALSE(IsClosed(&h, id));
  h.Pass(50);
  CHECK(IsClosed(&h, id));
  CHECK(h.TakeReplies(id)[0].ErrorText() == kWrong);
  // One that is gone gets none.
  const ConnectionId gone = h.Connect();
  h.Send(gone, IdentifyRequest(1, "wrong"));
  h.Disconnect(gone);
  h.Pass(2 * kWrongSecretMs);
}

TEST_CASE("a thousand guesses take nobody else's turn, and no line or row has a secret") {
  Limits limits;
  limits.unidentified_max = 2'000;
  EngineHarness h(limits);
  SetCheckout(&h);
  const ConnectionId other = h.ConnectAs("checkout");
  std::vector<ConnectionId> guessers;
  for (int i = 0; i < 200; ++i) guessers.push_back(h.Connect("127.0.0.1:" + std::to_string(i)));
  std::string log;
  uint32_t msgid = 0;
  for (uint32_t round = 0; round < kWrongSecretsMax; ++round) {
    for (const ConnectionId id : guessers) h.Send(id, IdentifyRequest(1, "guess-of-a-secret"));
    // The work of one turn: what others ask is answered at its end.
    h.Send(other, PlainRequest(++msgid, Method::kPing));
    h.Turn();
    CHECK(h.TakeIds(other) == testing::Ids(msgid, msgid));
    h.Settle();
    h.Pass(kWrongSecretMs);
    log += h.driver().TakeLog();
  }
  for (const ConnectionId id : guessers) {
    CHECK(IsClosed(&h, id));
    CHECK(h.TakeReplies(id).size() == kWrongSecretsMax);
  }
  CHECK(log.find("guess-of") == std::string::npos);
  CHECK(log.find("has shown a wrong secret") == log.rfind("has shown a wrong secret"));
}

TEST_CASE("a connection becomes no principal that may not reach its session") {
  EngineHarness h;
  h.SetAccess({PrincipalEntry("a", Role::kClient, {{"shop"}}),
               PrincipalEntry("b", Role::kClient, {{"bank"}}, kSecret)});
  const ConnectionId id = h.ConnectAs("a");
  REQUIRE(h.Call(id, HelloRequest(1, "shop", "x")).ErrorText() == "ok");
  CHECK(Known(h.Call(id, IdentifyRequest(2, kSecret))) ==
        "PERMISSION: identify: b may not reach the namespace of this connection's session; "
        "identify on a new connection, before hello");
  CHECK(Known(h.Call(id, IdentifyRequest(3))) == "a client certificate shop");
}

// --- Another list. ---

TEST_CASE("connections of principals that are gone or may less end, others get their rights") {
  EngineHarness h;
  const auto entries = [](Role role, std::vector<std::string> namespaces) {
    return PrincipalEntry("c", role, std::move(namespaces));
  };
  h.SetAccess({entries(Role::kClient, {"default", "shop"}), PrincipalEntry("gone", Role::kClient)});
  const ConnectionId client = h.ConnectAs("c");
  const ConnectionId gone = h.ConnectAs("gone");
  const ConnectionId stranger = h.ConnectAs("later");
  const uint64_t token = h.Take(client);
  h.TakeReplies(gone);

  // More: in place.
  h.SetAccess({entries(Role::kAdministrator, {"default", "shop", "bank"}),
               PrincipalEntry("later", Role::kObserver)});
  h.driver().TakeLog();
  h.Settle();
  CHECK(IsClosed(&h, gone));
  CHECK(h.driver().socket(gone).flushed);
  CHECK(h.driver().TakeLog() ==
        "info: principal gone may do less by the new access list, or nothing: closed 1 "
        "connection\n");
  CHECK(h.driver().last_topic_and_fields() == "act principal=gone connections=1");
  CHECK(Known(h.Call(client, IdentifyRequest(2))) ==
        "c administrator certificate default shop "
        "bank");
  CHECK(Known(h.Call(stranger, IdentifyRequest(2))) == "later observer certificate *");

  // Less: its tokens stay for their time, as after every end of a connection.
  h.SetAccess({entries(Role::kAdministrator, {"shop"})});
  h.Settle();
  CHECK(IsClosed(&h, client));
  CHECK(h.core().books().tokens().size() == 1);
  CHECK(token != 0);
}

TEST_CASE("the first list ends whoever was let in without one, some a turn") {
  EngineHarness h;
  std::vector<ConnectionId> ids;
  for (int i = 0; i < 1'500; ++i) ids.push_back(h.Connect("192.0.2.1:" + std::to_string(i)));
  h.SetAccess({PrincipalEntry("c", Role::kClient)});
  const auto closed = [&] {
    return std::count_if(ids.begin(), ids.end(), [&](ConnectionId id) { return IsClosed(&h, id); });
  };
  h.Turn();
  CHECK(closed() == 1'024);
  h.Settle();
  CHECK(closed() == 1'500);
}

TEST_CASE("a new list has one line for each principal that loses connections, with their number") {
  EngineHarness h;
  for (int i = 0; i < 3; ++i) h.Connect("192.0.2.1:" + std::to_string(i));
  h.SetAccess({PrincipalEntry("a", Role::kClient), PrincipalEntry("b", Role::kClient)});
  h.Settle();
  CHECK(h.driver().TakeLog() ==
        "info: whoever was let in without an access list may do less by the new access list, or "
        "nothing: closed 3 connections\n");
  for (int i = 0; i < 100; ++i) h.ConnectAs("b");
  h.ConnectAs("a");
  h.SetAccess({});
  h.Settle();
  CHECK(h.driver().TakeLog() ==
        "info: principal a may do less by the new access list, or nothing: closed 1 connection\n"
        "info: principal b may do less by the new access list, or nothing: closed 100 "
        "connections\n");
}

TEST_CASE("the line of a wrong secret shares its bound with no other lines about peers") {
  EngineHarness h;
  SetCheckout(&h);
  h.Send(h.Connect(), IdentifyRequest(1, "wrong"));
  h.Settle();
  CHECK(h.driver().last_topic_and_fields() == "server peer=127.0.0.1:1000 reason=wrong secret");
}

// --- Strangers. ---

TEST_CASE("a stranger has ten seconds") {
  EngineHarness h;
  SetCheckout(&h);
  const ConnectionId id = h.Connect();
  const ConnectionId known = h.ConnectAs("checkout");
  h.Pass(kStrangerMsMax - 50);
  CHECK(h.Call(id, PlainRequest(1, Method::kPing)).ErrorText() == "ok");
  CHECK_FALSE(IsClosed(&h, id));
  h.Pass(50);
  CHECK(IsClosed(&h, id));
  CHECK_FALSE(IsClosed(&h, known));
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1000 is not known after 10000 ms; closing it\n");
}

TEST_CASE("a stranger may send four KiB and get as much") {
  EngineHarness h;
  SetCheckout(&h);
  const std::string ping = PlainRequest(1, Method::kPing);
  const auto pings = [&](size_t bytes) {
    std::string all;
    while (all.size() + ping.size() <= bytes) all += ping;
    return all;
  };
  const ConnectionId within = h.Connect();
  h.Send(within, pings(1000));
  h.Settle();
  CHECK_FALSE(IsClosed(&h, within));
  // The answers of pings are longer than they are.
  const ConnectionId talkative = h.Connect();
  h.Send(talkative, pings(kStrangerBytesMax));
  h.Settle();
  CHECK(IsClosed(&h, talkative));
  CHECK(h.driver().socket(talkative).written.size() <= kStrangerBytesMax + 100);
  // A message that does not end, piece by piece.
  const ConnectionId slow = h.Connect();
  h.Send(slow, std::string("\x94\x00\x01\xa4ping\x91\xda\xff\x00", 12));
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(IsClosed(&h, slow));
    h.Send(slow, std::string(1000, 'x'));
  }
  CHECK(IsClosed(&h, slow));
  // What follows a right secret is no stranger's.
  const ConnectionId known = h.Connect();
  h.Send(known, IdentifyRequest(1, kSecret) + pings(20'000));
  h.Settle();
  CHECK_FALSE(IsClosed(&h, known));
}

TEST_CASE("of too many strangers the oldest from the address with most gives way") {
  Limits limits;
  limits.unidentified_max = 4;
  EngineHarness h(limits);
  SetCheckout(&h);
  const ConnectionId known = h.ConnectAs("checkout");
  const ConnectionId lone = h.Connect("192.0.2.1:1");
  const auto of_crowd = [&](const std::string& host, int port) {
    return h.Connect(net::Peer{.name = "[" + host + "]:" + std::to_string(port), .host = host});
  };
  // One network of IPv6 is one address.
  const ConnectionId first = of_crowd("2001:db8::1", 1);
  const ConnectionId second = of_crowd("2001:db8::2", 2);
  of_crowd("2001:db8::3", 3);
  CHECK_FALSE(IsClosed(&h, first));
  const ConnectionId late = h.Connect("192.0.2.2:1");
  CHECK(IsClosed(&h, first));
  CHECK_FALSE(IsClosed(&h, second));
  of_crowd("2001:db8::4", 4);
  CHECK(IsClosed(&h, second));
  for (const ConnectionId id : {known, lone, late}) CHECK_FALSE(IsClosed(&h, id));
  CHECK(h.driver().TakeLog().starts_with(
      "warn: connection [2001:db8::1]:1 gives way to another that is not known either: 4 are not, "
      "3 of them from 2001:db8::/64; closing it\n"));
}

TEST_CASE("a crowd of single addresses pushes out its oldest, whatever their text") {
  Limits limits;
  limits.unidentified_max = 3;
  EngineHarness h(limits);
  SetCheckout(&h);
  std::vector<ConnectionId> ids;
  for (const char* const host : {"192.0.2.5", "192.0.2.9", "192.0.2.1", "192.0.2.8", "192.0.2.2"}) {
    ids.push_back(h.Connect(net::Peer{.name = std::string(host) + ":1", .host = host}));
  }
  // One that comes back from the address with the greatest text stays, too.
  ids.push_back(h.Connect(net::Peer{.name = "192.0.2.9:2", .host = "192.0.2.9"}));
  for (size_t i = 0; i < ids.size(); ++i) {
    CAPTURE(i);
    CHECK(IsClosed(&h, ids[i]) == (i < 3));
  }
}

TEST_CASE("connections that shake hands are strangers, also without an access file") {
  Limits limits;
  limits.unidentified_max = 2;
  EngineHarness h(limits);
  const auto peer_of = [](int port, bool shakes_hands) {
    return net::Peer{.name = "192.0.2.1:" + std::to_string(port),
                     .host = "192.0.2.1",
                     .shakes_hands = shakes_hands};
  };
  const ConnectionId plain = h.Connect(peer_of(1, false));
  const ConnectionId first = h.Connect(peer_of(2, true));
  const ConnectionId second = h.Connect(peer_of(3, true));
  net::Peer third_peer = peer_of(4, false);
  const ConnectionId third = h.Connect(third_peer);
  CHECK_FALSE(IsClosed(&h, first));
  // It might have been plain, and begins to shake hands.
  third_peer.shakes_hands = true;
  h.engine().OnIdentity(third, third_peer, h.now());
  CHECK(IsClosed(&h, first));
  third_peer.shakes_hands = false;
  third_peer.encrypted = true;
  h.engine().OnIdentity(third, third_peer, h.now());
  CHECK(Known(h.Call(third, IdentifyRequest(1))) == "192.0.2.1:4 administrator open *");
  h.driver().TakeLog();
  h.Pass(kStrangerMsMax);
  CHECK(h.driver().TakeLog() ==
        "warn: connection 192.0.2.1:3 has done no TLS handshake after 10000 ms; closing it\n");
  CHECK(IsClosed(&h, second));
  CHECK_FALSE(IsClosed(&h, third));
  CHECK_FALSE(IsClosed(&h, plain));
}

TEST_CASE("figures count strangers, wrong secrets and refused calls") {
  EngineHarness h;
  h.SetAccess({PrincipalEntry("eve", Role::kObserver)});
  const ConnectionId eve = h.ConnectAs("eve");
  h.Connect("192.0.2.1:1");
  h.Send(h.Connect(), IdentifyRequest(1, "wrong"));
  h.Call(eve, AcquireRequest(2, 1));
  const EngineReply info = h.Call(eve, PlainRequest(3, Method::kInfo));
  const auto has = [&](std::string_view name, char value) {
    const size_t at = info.result.find(name);
    REQUIRE(at != std::string::npos);
    return info.result[at + name.size()] == value;
  };
  CHECK(has("unidentified", '\x02'));
  CHECK(has("wrong_secrets", '\x01'));
  CHECK(has("refused_calls", '\x01'));
}

}  // namespace
}  // namespace nowcalls::engine
