// Mass reclaims, purges and drains against a server that a test writes: what is asked, in which
// pieces, and what the operator is asked before.
#include "admin/actions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_server.h"
#include "unit/admin/string_output.h"

namespace nowcalls::admin {
namespace {

using testing::FakeServer;
using wire::Envelope;
using wire::Method;
using wire::OutputBuffer;

constexpr int64_t kPatientMs = 30'000;

// A server with tokens of one flow, held by client "a" of namespace "shop"; its state is read by
// the test only between calls.
class Server {
 public:
  explicit Server(uint64_t tokens)
      : tokens_(tokens), server_([this](FakeServer::Peer* peer) {
          Envelope request;
          while (peer->Take(&request)) {
            peer->Answer([&](OutputBuffer* out) { Answer(request, out); });
          }
        }) {}

  void set_removed() { removed_ = true; }
  void set_unknown() { unknown_ = true; }
  // So many are granted behind each piece that is taken back.
  void set_granted_meanwhile(uint64_t tokens) { granted_ = tokens; }
  void set_failing_behind(size_t pieces) { fail_behind_ = pieces; }

  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  // The one connection that a FakeServer takes.
  client::BlockingClient* client() {
    if (client_ == nullptr) {
      auto client = client::BlockingClient::Connect(server_.address(), kPatientMs);
      REQUIRE_MESSAGE(client.ok(), client.status().ToString());
      client_ = *std::move(client);
    }
    return client_.get();
  }

 private:
  void Answer(const Envelope& request, OutputBuffer* out) {
    const std::lock_guard lock(mutex_);
    wire::RequestError error;
    switch (request.method) {
      case Method::kFlow: {
        if (unknown_) {
          return wire::EncodeError(
              request.msgid,
              {wire::ErrorCode::kBadParams, "flow: flow_id 7 has neither a rule nor tokens"}, out);
        }
        wire::FlowRow row;
        row.removed = removed_;
        row.tokens = tokens_;
        row.now_calls = 3 * tokens_;
        return wire::EncodeFlow(request.msgid, row, out);
      }
      case Method::kSessions: return AnswerSessions(request, out);
      case Method::kReclaimFlow: {
        wire::ReclaimFlowParams params;
        CHECK(wire::DecodeReclaimFlow(request.params, &params, &error));
        return Take("flow " + std::to_string(params.flow_id) + " " + std::string(params.reason),
                    params.limit, request, out);
      }
      case Method::kReclaimClient: {
        wire::ReclaimClientParams params;
        CHECK(wire::DecodeReclaimClient(request.params, &params, &error));
        return Take(std::string(params.name_space) + "/" + std::string(params.client_id) + " " +
                        std::string(params.reason),
                    params.limit, request, out);
      }
      case Method::kPurge: {
        wire::PurgeParams params;
        CHECK(wire::DecodePurge(request.params, &params, &error));
        const std::string why = params.reason.empty() ? "" : " " + std::string(params.reason);
        return Take("purge " + std::to_string(params.flow_id) + why, params.limit, request, out);
      }
      case Method::kDrain: {
        wire::DrainParams params;
        CHECK(wire::DecodeDrain(request.params, &params, &error));
        asked_.push_back(std::string("drain ") + (params.on ? "on" : "off") +
                         std::string(params.reason));
        const auto status = removed_ ? TokenStatus::kNoRuleExists : TokenStatus::kOk;
        return wire::EncodeDrain(request.msgid, {status, 3 * tokens_, tokens_}, out);
      }
      case Method::kFlows: {
        wire::FlowRow row;
        row.flow_id = 7;
        row.name_space = "shop";
        row.tokens = tokens_;
        row.now_calls = 3 * tokens_;
        wire::FlowRow other = row;
        other.name_space = "bank";
        return wire::EncodeFlowPage(request.msgid, {row, other}, 0, out);
      }
      case Method::kReclaimNamespace:
      case Method::kDrainNamespace: return AnswerNamespace(request, out);
      default:
        return wire::EncodeError(request.msgid, {wire::ErrorCode::kUnknownMethod, "what?"}, out);
    }
  }

  void AnswerNamespace(const Envelope& request, OutputBuffer* out) {
    wire::RequestError error;
    if (request.method == Method::kReclaimNamespace) {
      wire::ReclaimNamespaceParams params;
      CHECK(wire::DecodeReclaimNamespace(request.params, &params, &error));
      asked_.push_back(std::string(params.name_space) + " " + std::string(params.reason) + ", " +
                       std::to_string(params.limit) + " from " + std::to_string(params.first_flow));
      // The first piece passes over flows without tokens.
      const uint64_t taken = params.first_flow == 0 ? 0 : std::min<uint64_t>(params.limit, tokens_);
      tokens_ -= taken;
      return wire::EncodeReclaimNamespace(request.msgid, {taken, tokens_ > 0 ? 7U : 0U}, out);
    }
    wire::DrainNamespaceParams params;
    CHECK(wire::DecodeDrainNamespace(request.params, &params, &error));
    asked_.push_back("drain " + std::string(params.name_space) + (params.on ? " on" : " off") +
                     " from " + std::to_string(params.first_flow));
    if (removed_) {
      return wire::EncodeDrainNamespace(request.msgid, {TokenStatus::kNoRuleExists}, out);
    }
    const uint64_t next = params.first_flow == 0 ? 7 : 0;
    return wire::EncodeDrainNamespace(request.msgid, {TokenStatus::kOk, 6, 2, 1, next}, out);
  }

  // Two pages; the client is on the second, beside others.
  void AnswerSessions(const Envelope& request, OutputBuffer* out) const {
    wire::PageParams page;
    wire::RequestError error;
    CHECK(wire::DecodePage(request.method, request.params, &page, &error));
    wire::SessionRow row;
    row.name_space = "shop";
    row.client_id = "b";
    row.tokens = 1000;
    if (page.cursor == 0) return wire::EncodeSessionPage(request.msgid, {row}, 7, out);
    wire::SessionRow ours = row;
    ours.client_id = "a";
    ours.tokens = tokens_;
    ours.now_calls = 3 * tokens_;
    row.client_id = "a";
    row.name_space = "bank";
    wire::EncodeSessionPage(request.msgid, {row, ours}, 0, out);
  }

  void Take(const std::string& what, uint32_t limit, const Envelope& request, OutputBuffer* out) {
    asked_.push_back(what + ", " + std::to_string(limit));
    if (asked_.size() > fail_behind_) {
      return wire::EncodeError(request.msgid, {wire::ErrorCode::kOverloaded, "too much"}, out);
    }
    const uint64_t taken = std::min<uint64_t>(limit, tokens_);
    tokens_ = tokens_ - taken + granted_;
    wire::EncodeReclaimed(request.msgid, {taken, tokens_ > 0}, out);
  }

  mutable std::mutex mutex_;
  uint64_t tokens_;
  uint64_t granted_ = 0;
  size_t fail_behind_ = SIZE_MAX;
  bool removed_ = false;
  bool unknown_ = false;
  std::vector<std::string> asked_;
  FakeServer server_;
  std::unique_ptr<client::BlockingClient> client_;
};

struct Done {
  std::string text;  // What is printed, or the status.
  std::string err;
};

// `answer`: what the operator types when asked; nullptr: there is no terminal.
Done Do(Server* server, const Arguments& arguments, const char* answer = nullptr) {
  Done done;
  StringOutput out;
  const Streams streams{.out = out.get(),
                        .err = [&](std::string_view bytes) { done.err += bytes; },
                        .err_is_terminal = answer != nullptr,
                        .in_is_terminal = answer != nullptr,
                        .read_line = [&] { return std::string(answer); }};
  const Result<Affected> affected = FindAffected(arguments, server->client());
  if (!affected.ok()) return {affected.status().ToString(), done.err};
  const Status confirmable = CheckConfirmable(arguments, *affected, streams);
  if (!confirmable.ok()) return {confirmable.ToString(), done.err};
  const Result<std::string> acted = Act(arguments, *affected, streams, server->client());
  done.text = acted.ok() ? *acted : acted.status().ToString();
  return done;
}

Arguments OfFlow(bool yes = true) {
  Arguments arguments;
  arguments.command = Command::kReclaimFlow;
  arguments.flow_id = 7;
  arguments.reason = "hung";
  arguments.yes = yes;
  return arguments;
}

Arguments OfClient(bool yes = true) {
  Arguments arguments;
  arguments.command = Command::kReclaimClient;
  arguments.name_space = "shop";
  arguments.client_id = "a";
  arguments.reason = "hung";
  arguments.yes = yes;
  return arguments;
}

Arguments OfPurge(bool yes = true) {
  Arguments arguments;
  arguments.command = Command::kPurge;
  arguments.flow_id = 7;
  arguments.yes = yes;
  return arguments;
}

using Asked = std::vector<std::string>;

TEST_CASE("a flow is reclaimed in pieces until as many are back as were out") {
  Server server(2300);
  CHECK(Do(&server, OfFlow()).text == "flow 7: 2300 tokens taken back\n");
  CHECK(server.asked() == Asked{"flow 7 hung, 1000", "flow 7 hung, 1000", "flow 7 hung, 300"});
}

TEST_CASE("a reclaim ends though others acquire all the while, and says so") {
  Server server(1500);
  server.set_granted_meanwhile(400);
  CHECK(Do(&server, OfFlow()).text ==
        "flow 7: 1500 tokens taken back; more were granted meanwhile\n");
  CHECK(server.asked() == Asked{"flow 7 hung, 1000", "flow 7 hung, 500"});
}

TEST_CASE("a client's tokens are counted over the pages of sessions, and taken back") {
  Server server(1);
  CHECK(Do(&server, OfClient()).text == "client 'a' of namespace 'shop': 1 token taken back\n");
  CHECK(server.asked() == Asked{"shop/a hung, 1"});
}

TEST_CASE("a namespace is reclaimed piece by piece, past flows that have no tokens") {
  Server server(1200);
  Arguments arguments;
  arguments.command = Command::kReclaimNamespace;
  arguments.name_space = "shop";
  arguments.reason = "hung";
  arguments.yes = true;
  CHECK(Do(&server, arguments).text == "namespace 'shop': 1200 tokens taken back\n");
  CHECK(server.asked() ==
        Asked{"shop hung, 1000 from 0", "shop hung, 1000 from 7", "shop hung, 200 from 7"});
}

TEST_CASE("a namespace is drained piece by piece, and one without rules is told") {
  Server server(2);
  Arguments arguments;
  arguments.command = Command::kDrainNamespace;
  arguments.name_space = "shop";
  CHECK(Do(&server, arguments).text ==
        "namespace 'shop' grants nothing by 2 rules, 4 tokens with nowCalls 12 out\n");
  CHECK(server.asked() == Asked{"drain shop on from 0", "drain shop on from 7"});
  arguments.off = true;
  CHECK(Do(&server, arguments).text ==
        "namespace 'shop' grants again by 2 rules, 4 tokens with nowCalls 12 out\n");
  server.set_removed();
  CHECK(Do(&server, arguments).text == "not_found: namespace 'shop' has no rule in force");
}

TEST_CASE("a purge needs no reason, and a flow whose rule is gone") {
  Server server(3);
  CHECK(Do(&server, OfPurge()).text ==
        "invalid_argument: flow 7 has a rule in force; purge takes back what removed rules have "
        "left behind: remove the rule first, or use reclaim --flow");
  server.set_removed();
  CHECK(Do(&server, OfPurge()).text == "flow 7: 3 tokens taken back\n");
  CHECK(server.asked() == Asked{"purge 7, 3"});
}

TEST_CASE("a purge and a drain pass on the reason, if there is one") {
  Server server(3);
  Arguments drain;
  drain.command = Command::kDrain;
  drain.reason = ", upgrade";
  Do(&server, drain);
  server.set_removed();
  Arguments purge = OfPurge();
  purge.reason = "old rule";
  CHECK(Do(&server, purge).text == "flow 7: 3 tokens taken back\n");
  CHECK(server.asked() == Asked{"drain on, upgrade", "purge 7 old rule, 3"});
}

TEST_CASE("where nothing is out nothing is asked for, and nobody is asked") {
  Server server(0);
  const Done flow = Do(&server, OfFlow(/*yes=*/false), "y");
  CHECK(flow.text == "not_found: flow 7 has no live token");
  CHECK(flow.err.empty());
  CHECK(Do(&server, OfClient()).text ==
        "not_found: client 'a' of namespace 'shop' has no live token");
  CHECK(server.asked().empty());
}

TEST_CASE("a flow that is not there is told before anything else, with or without a terminal") {
  Server server(0);
  server.set_unknown();
  for (const bool yes : {false, true}) {
    for (const Arguments& arguments : {OfFlow(yes), OfPurge(yes)}) {
      CHECK(Do(&server, arguments).text == "not_found: flow 7 has neither a rule nor tokens");
    }
  }
  CHECK(Do(&server, OfClient(false)).text ==
        "not_found: client 'a' of namespace 'shop' has no live token");
  CHECK(server.asked().empty());
}

TEST_CASE("the operator sees how much it is and decides") {
  Server server(5);
  const Done no = Do(&server, OfFlow(/*yes=*/false), "n");
  CHECK(no.err == "flow 7 has 5 tokens with nowCalls 15 out. Take back all of them? [y/N] ");
  CHECK(no.text == "invalid_argument: not confirmed; nothing was taken back");
  for (const char* answer : {"", "no", "yess", " y"}) {
    CHECK(Do(&server, OfClient(/*yes=*/false), answer).text.starts_with("invalid_argument: not"));
  }
  CHECK(server.asked().empty());
  const Done yes = Do(&server, OfClient(/*yes=*/false), "y");
  CHECK(yes.err ==
        "client 'a' of namespace 'shop' has 5 tokens with nowCalls 15 out. Take back all of them? "
        "[y/N] ");
  CHECK(yes.text == "client 'a' of namespace 'shop': 5 tokens taken back\n");
}

TEST_CASE("without a terminal --yes is needed, but not to drain") {
  Server server(5);
  constexpr char kUnconfirmed[] =
      " has 5 tokens with nowCalls 15 out; taking back all of them must be confirmed, and there is "
      "no terminal to ask at: add --yes";
  CHECK(Do(&server, OfFlow(false)).text == std::string("invalid_argument: flow 7") + kUnconfirmed);
  CHECK(Do(&server, OfClient(false)).text ==
        std::string("invalid_argument: client 'a' of namespace 'shop'") + kUnconfirmed);
  CHECK(Do(&server, OfPurge(false)).text.starts_with("invalid_argument: flow 7 has a rule in "));
  CHECK(server.asked().empty());
  Arguments drain;
  drain.command = Command::kDrain;
  drain.flow_id = 7;
  CHECK(Do(&server, drain).text == "flow 7 grants nothing more, 5 tokens with nowCalls 15 out\n");
  drain.off = true;
  CHECK(Do(&server, drain).text == "flow 7 grants again, 5 tokens with nowCalls 15 out\n");
  CHECK(server.asked() == Asked{"drain on", "drain off"});
  server.set_removed();
  CHECK(Do(&server, drain).text == "not_found: flow 7 has no rule in force, so it grants nothing");
}

TEST_CASE("a failure on the way says how much was taken back before") {
  Server server(2300);
  server.set_failing_behind(2);
  CHECK(Do(&server, OfFlow()).text ==
        "resource_exhausted: flow 7: 2000 tokens taken back, then: OVERLOADED: too much");
  Server at_once(5);
  at_once.set_failing_behind(0);
  CHECK(Do(&at_once, OfFlow()).text == "resource_exhausted: OVERLOADED: too much");
}

// What MaybeDone has the operator run.
std::string LookOf(Arguments arguments) {
  arguments.server = "[::1]:18730";
  const Status status = MaybeDone(arguments, Status::OutcomeUnknown("no answer"));
  const std::string& text = status.message();
  const size_t begin = text.find('`') + 1;
  return text.substr(begin, text.rfind('`') - begin);
}

TEST_CASE("how to look is told as a command for a shell, whatever the names are") {
  Arguments client = OfClient();
  CHECK(LookOf(client) ==
        "nowcalls-admin sessions --client a --namespace shop --server '[::1]:18730'");
  client.client_id = "bob's $HOME";
  client.name_space = "-x";
  CHECK(LookOf(client) ==
        "nowcalls-admin sessions --client 'bob'\\''s $HOME' --namespace=-x --server "
        "'[::1]:18730'");
  Arguments load;
  load.command = Command::kRulesLoad;
  load.name_space = "shop";
  load.file = "my rules.json";
  CHECK(LookOf(load) ==
        "nowcalls-admin rules diff 'my rules.json' --namespace shop --server '[::1]:18730'");
  load.file = "-r.json";
  CHECK(LookOf(load) ==
        "nowcalls-admin rules diff ./-r.json --namespace shop --server '[::1]:18730'");
  for (const char* gone :
       {"/dev/stdin", "/dev/fd/63", "/proc/self/fd/0", "a\nb.json", "a\xff.json"}) {
    load.file = gone;
    CHECK(LookOf(load) == "nowcalls-admin rules list --namespace shop --server '[::1]:18730'");
  }
  load.file = "-";
  CHECK(LookOf(load) == "nowcalls-admin rules list --namespace shop --server '[::1]:18730'");
  CHECK(LookOf(OfFlow()) == "nowcalls-admin flow 7 --server '[::1]:18730'");
}

TEST_CASE("what surely was not carried out needs no look") {
  const Status refused = Status::Unavailable("what listens there does not look like a server");
  CHECK(MaybeDone(OfClient(), refused).ToString() == refused.ToString());
}

TEST_CASE("only actions are actions") {
  CHECK(IsAction(Command::kReclaimClient));
  CHECK(IsAction(Command::kDrain));
  CHECK_FALSE(IsAction(Command::kReclaim));
  CHECK_FALSE(IsAction(Command::kHistory));
}

}  // namespace
}  // namespace nowcalls::admin
