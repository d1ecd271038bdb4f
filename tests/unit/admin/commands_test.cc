// What the operator is told at the end of a command, whatever the server or the disk does.
#include "admin/commands.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "backup/backup.h"
#include "base/exit_codes.h"
#include "support/fake_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/admin/string_output.h"
#include "unit/backup/served_ledger.h"
#include "wire/admin_messages.h"
#include "wire/cluster_messages.h"
#include "wire/json.h"
#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::admin {
namespace {

using testing::FakeServer;
using wire::Envelope;
using wire::Method;
using wire::OutputBuffer;

constexpr uint32_t kCommandPatientMs = 30'000;

// False: it closes the connection instead.
using Answer = std::function<bool(const Envelope& request, OutputBuffer* out)>;

struct Ended {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs a command against a server; `out_error`: what writing the output fails with.
Ended RunAgainst(const Answer& answer, Arguments arguments, int out_error = 0) {
  FakeServer server([&answer](FakeServer::Peer* peer) {
    Envelope request;
    while (peer->Take(&request)) {
      OutputBuffer bytes;
      if (!answer(request, &bytes)) return;
      peer->Send(bytes.view());
    }
  });
  arguments.server = server.address();
  arguments.timeout_ms = kCommandPatientMs;
  StringOutput out;
  if (out_error != 0) out.FailWith(out_error);
  Ended ended;
  const Streams streams{.out = out.get(), .err = [&](std::string_view b) { ended.err += b; }};
  ended.exit_code = Run(arguments, streams);
  ended.out = out.text();
  return ended;
}

Arguments Of(Command command) {
  Arguments arguments;
  arguments.command = command;
  arguments.flow_id = 7;
  arguments.token_id = 77;
  arguments.name_space = "shop";
  arguments.client_id = "a";
  arguments.reason = "hung";
  arguments.yes = true;
  return arguments;
}

// A server with one token of flow 7 and of client a, which does what it is asked.
bool Obliging(const Envelope& request, OutputBuffer* out) {
  switch (request.method) {
    case Method::kFlow: {
      wire::FlowRow row;
      row.tokens = 1;
      row.removed = true;
      wire::EncodeFlow(request.msgid, row, out);
      return true;
    }
    case Method::kSessions: {
      wire::SessionRow row;
      row.name_space = "shop";
      row.client_id = "a";
      row.tokens = 1;
      wire::EncodeSessionPage(request.msgid, {row}, 0, out);
      return true;
    }
    case Method::kRulesList: wire::EncodeSessionPage(request.msgid, {}, 0, out); return true;
    case Method::kFlows: wire::EncodeFlowPage(request.msgid, {}, 0, out); return true;
    case Method::kNamespaces: wire::EncodeNamespacePage(request.msgid, {}, 0, out); return true;
    case Method::kReclaim:
      wire::EncodeStatus(request.msgid, TokenStatus::kReleaseOk, out);
      return true;
    case Method::kReclaimFlow:
    case Method::kReclaimClient:
    case Method::kPurge: wire::EncodeReclaimed(request.msgid, {1, false}, out); return true;
    case Method::kDrain:
      wire::EncodeDrain(request.msgid, {TokenStatus::kOk, 1, 1}, out);
      return true;
    default: return false;
  }
}

TEST_CASE("a reclaim of an id that a reader of JSON has rounded names the token that is meant") {
  constexpr uint64_t kLive = 2646993461700391327;
  const auto server = [](const Envelope& request, OutputBuffer* out) {
    if (request.method == Method::kTokens) {
      wire::TokenRow row;
      row.token_id = kLive;
      wire::EncodeTokenPage(request.msgid, {row}, 0, out);
    } else {
      wire::EncodeStatus(request.msgid, TokenStatus::kAlreadyRelease, out);
    }
    return true;
  };
  Arguments arguments = Of(Command::kReclaim);
  // As jq 1.6 and as JavaScript print it.
  for (const uint64_t rounded : {2646993461700391400, 2646993461700391424}) {
    arguments.token_id = rounded;
    const Ended ended = RunAgainst(server, arguments);
    CHECK(ended.exit_code == kExitFailure);
    CHECK(ended.err.find("live is 2646993461700391327") != std::string::npos);
  }
  for (const uint64_t other : {uint64_t{2646993461700395000}, uint64_t{77}}) {
    arguments.token_id = other;
    const Ended ended = RunAgainst(server, arguments);
    CHECK(ended.exit_code == kExitFailure);
    CHECK(ended.err.find("is not live") != std::string::npos);
    CHECK(ended.err.find("rounded") == std::string::npos);
  }
}

TEST_CASE("what a server says cannot drive the operator's terminal") {
  const Ended ended = RunAgainst(
      [](const Envelope& request, OutputBuffer* out) {
        wire::EncodeError(request.msgid,
                          {wire::ErrorCode::kBadParams,
                           "\x1b]0;pwned\x07\x1b[31mred\nnowcalls-admin: a line of its own"},
                          out);
        return true;
      },
      Of(Command::kDrain));
  CHECK(ended.exit_code == kExitFailure);
  CHECK(ended.err ==
        "nowcalls-admin: BAD_PARAMS: \\x1b]0;pwned\\x07\\x1b[31mred\\x0anowcalls-admin: a line of "
        "its own\n");
}

TEST_CASE("ping says in a line that the server answers, or that it does not") {
  const Ended answered = RunAgainst(
      [](const Envelope& request, OutputBuffer* out) {
        CHECK(request.method == Method::kPing);
        wire::EncodePing(request.msgid, 1'700'000'000'000, out);
        return true;
      },
      Of(Command::kPing));
  CHECK(answered.exit_code == kExitOk);
  CHECK(answered.out.starts_with("127.0.0.1:"));
  CHECK(answered.out.ends_with(" answers\n"));
  CHECK(answered.err.empty());
  const Ended silent =
      RunAgainst([](const Envelope&, OutputBuffer*) { return false; }, Of(Command::kPing));
  CHECK(silent.exit_code == kExitUnavailable);
  CHECK(silent.out.empty());
}

TEST_CASE("what cannot be confirmed is wrong usage, but not where there is nothing to take") {
  const auto run = [](Command command, uint64_t tokens, bool known) {
    Arguments arguments = Of(command);
    arguments.yes = false;
    return RunAgainst(
        [&](const Envelope& request, OutputBuffer* out) {
          if (!known) {
            wire::EncodeError(request.msgid, {wire::ErrorCode::kBadParams, "flow: what?"}, out);
            return true;
          }
          wire::FlowRow row;
          row.removed = true;
          row.tokens = tokens;
          CHECK(request.method == Method::kFlow);
          wire::EncodeFlow(request.msgid, row, out);
          return true;
        },
        arguments);
  };
  for (const Command command : {Command::kReclaimFlow, Command::kPurge}) {
    const Ended some = run(command, 2, true);
    CHECK(some.exit_code == kExitUsage);
    CHECK(some.err.find("flow 7 has 2 tokens") != std::string::npos);
    const Ended none = run(command, 0, true);
    CHECK(none.exit_code == kExitFailure);
    CHECK(none.err == "nowcalls-admin: flow 7 has no live token\n");
    const Ended unknown = run(command, 0, false);
    CHECK(unknown.exit_code == kExitFailure);
    CHECK(unknown.err == "nowcalls-admin: flow 7 has neither a rule nor tokens\n");
  }
}

TEST_CASE("what was carried out is told, also when the output cannot be written") {
  const struct {
    Command command;
    std::string done;
  } cases[] = {
      {Command::kReclaim, "token 77 reclaimed"},
      {Command::kReclaimFlow, "flow 7: 1 token taken back"},
      {Command::kReclaimClient, "client 'a' of namespace 'shop': 1 token taken back"},
      {Command::kPurge, "flow 7: 1 token taken back"},
      {Command::kDrain, "flow 7 grants nothing more, 1 token with nowCalls 1 out"},
  };
  for (const auto& item : cases) {
    const std::string& done = item.done;
    CAPTURE(done);
    const Ended told = RunAgainst(Obliging, Of(item.command));
    CHECK(told.exit_code == kExitOk);
    CHECK(told.out == done + "\n");
    CHECK(told.err.empty());
    for (const int error : {ENOSPC, EPIPE}) {
      const Ended ended = RunAgainst(Obliging, Of(item.command), error);
      CHECK(ended.exit_code == kExitIoError);
      CHECK(ended.err ==
            "nowcalls-admin: it was carried out, only telling so failed: " + done + "\n");
    }
  }
}

wire::ClusterReply TwoMembers() {
  return {.cluster = "c1",
          .prefix = "shop\x1b[2J",
          .term = 4,
          .writer = "a:1",
          .last_batch = 900,
          .log_bytes = 3 << 20,
          .log_bytes_max = 256 << 20,
          .members = {{.member = "0a",
                       .address = "a:1",
                       .version = "1",
                       .leads = true,
                       .applied = 900,
                       .synced = 890},
                      {.member = "0b",
                       .address = "b:1",
                       .version = "1",
                       .applied = 899,
                       .synced = 880,
                       .lag = 1,
                       .silent_ms = 300}}};
}

bool AnswersCluster(const Envelope& request, OutputBuffer* out) {
  if (request.method != Method::kCluster) return false;
  wire::EncodeCluster(request.msgid, TwoMembers(), out);
  return true;
}

TEST_CASE("cluster shows who writes, and each member with its lag") {
  Arguments arguments = Of(Command::kCluster);
  const Ended rows = RunAgainst(AnswersCluster, arguments);
  CHECK(rows.exit_code == kExitOk);
  CHECK(testing::Contains(
      rows.out, R"({"address":"b:1","role":"standby","lag_batches":1,"applied":899,"synced":880,)"
                R"("silent_ms":300,"version":"1","member":"0b","term":4,"last_batch":900,)"
                R"("log_bytes":3145728,"log_bytes_max":268435456,"prefix":)"));
  CHECK(testing::Contains(rows.out, R"({"address":"a:1","role":"writer",)"));
  arguments.format = Format::kTable;
  const Ended table = RunAgainst(AnswersCluster, arguments);
  CHECK(table.out ==
        "cluster shop\\x1b[2J: a:1 writes in term 4, last batch 900, log 3 of 256 MiB\n"
        "MEMBER  ROLE     LAG  BATCH  ON_DISK  SILENT  VERSION  ID\n"
        "a:1     writer     0    900      890     0ms  1        0a\n"
        "b:1     standby    1    899      880   300ms  1        0b\n");
}

TEST_CASE("a handover that is refused, or has no answer, is told as that") {
  const Arguments arguments = Of(Command::kHandover);
  const Ended refused = RunAgainst(
      [](const Envelope& request, OutputBuffer* out) {
        if (AnswersCluster(request, out)) return true;
        wire::EncodeError(request.msgid, {wire::ErrorCode::kOverloaded, "nobody else lives"}, out);
        return true;
      },
      arguments);
  CHECK(refused.exit_code == kExitFailure);
  CHECK(refused.err == "nowcalls-admin: OVERLOADED: nobody else lives\n");
  const Ended unanswered = RunAgainst(AnswersCluster, arguments);
  CHECK(unanswered.exit_code == kExitUnavailable);
  CHECK(testing::Contains(unanswered.err,
                          "it may have been carried out: look with `nowcalls-admin cluster "
                          "--server 127.0.0.1:"));
  // Asking alone changes nothing.
  const Ended asked = RunAgainst([](const Envelope&, OutputBuffer*) { return false; }, arguments);
  CHECK(asked.exit_code == kExitUnavailable);
  CHECK_FALSE(testing::Contains(asked.err, "may have been"));
}

TEST_CASE("where no member serves, the operator is told what that means") {
  Arguments arguments = Of(Command::kCluster);
  arguments.server = "127.0.0.1:1,127.0.0.1:2";
  std::string err;
  StringOutput out;
  const Streams streams{.out = out.get(), .err = [&](std::string_view b) { err += b; }};
  CHECK(Run(arguments, streams) == kExitUnavailable);
  CHECK(testing::Contains(err, "cannot reach 127.0.0.1:1: "));
  CHECK(testing::Contains(err, "cannot reach 127.0.0.1:2: "));
  CHECK(
      err.ends_with(" (a member that stands by refuses connections; its /healthz tells its "
                    "role)\n"));
}

TEST_CASE("an action without an answer may have been carried out, and how to see is told") {
  const testing::TempDir dir;
  testing::WriteStringToFile(dir.Sub("rules.json"), "[]");
  const struct {
    Command command;
    Method unanswered;
    std::string look;
  } cases[] = {
      {Command::kReclaim, Method::kReclaim, "history"},
      {Command::kReclaimFlow, Method::kReclaimFlow, "flow 7"},
      {Command::kReclaimClient, Method::kReclaimClient, "sessions --client a --namespace shop"},
      {Command::kPurge, Method::kPurge, "flow 7"},
      {Command::kDrain, Method::kDrain, "flow 7"},
      {Command::kRulesLoad, Method::kRulesLoad,
       "rules diff " + dir.Sub("rules.json") + " --namespace shop"},
  };
  for (const auto& item : cases) {
    const std::string& look = item.look;
    CAPTURE(look);
    Arguments arguments = Of(item.command);
    arguments.file = dir.Sub("rules.json");
    const Ended ended = RunAgainst(
        [silent = item.unanswered](const Envelope& request, OutputBuffer* out) {
          return request.method != silent && Obliging(request, out);
        },
        arguments);
    CHECK(ended.exit_code == kExitUnavailable);
    CAPTURE(ended.err);
    CHECK(ended.err.find("; it may have been carried out: look with `nowcalls-admin " + look +
                         " --server 127.0.0.1:") != std::string::npos);
    CHECK(ended.err.ends_with("`, then repeat\n"));
  }
  // Asking alone changes nothing.
  const Ended asked =
      RunAgainst([](const Envelope&, OutputBuffer*) { return false; }, Of(Command::kReclaimFlow));
  CHECK(asked.exit_code == kExitUnavailable);
  CHECK(asked.err.find("may have been") == std::string::npos);
}

TEST_CASE("what does not speak the protocol has carried nothing out, and the address is wrong") {
  const testing::TempDir dir;
  testing::WriteStringToFile(dir.Sub("rules.json"), "[]");
  for (const Command command :
       {Command::kReclaim, Command::kReclaimClient, Command::kDrain, Command::kRulesLoad,
        Command::kBackup, Command::kStat, Command::kInfo, Command::kPing}) {
    CAPTURE(static_cast<int>(command));
    Arguments arguments = Of(command);
    arguments.file = dir.Sub("rules.json");
    arguments.to = "/backup";
    const Ended ended = RunAgainst(
        [](const Envelope&, OutputBuffer* out) {
          out->Append("HTTP/1.1 400 Bad Request\r\n");
          return true;
        },
        arguments);
    CHECK(ended.exit_code == kExitUnavailable);
    CHECK(ended.out.empty());
    CHECK_MESSAGE(ended.err.starts_with("nowcalls-admin: what listens at 127.0.0.1:"), ended.err);
    CHECK_MESSAGE(ended.err.ends_with(" does not look like a nowcalls-server: it speaks HTTP; the "
                                      "token port of a nowcalls-server is usually 18730; check "
                                      "HOST:PORT\n"),
                  ended.err);
  }
}

TEST_CASE("info of what tells no version is none, and ends as other answers without sense do") {
  const Ended ended = RunAgainst(
      [](const Envelope& request, OutputBuffer* out) {
        wire::EncodeJsonResult(request.msgid, nlohmann::ordered_json{{"a", 1}}, out);
        return true;
      },
      Of(Command::kInfo));
  CHECK(ended.exit_code == kExitUnavailable);
  CHECK(ended.out.empty());
  CHECK(ended.err ==
        "nowcalls-admin: the server's answer to info was not understood: it tells no version; "
        "check HOST:PORT\n");
}

Ended RunAlone(const Arguments& arguments) {
  StringOutput out;
  Ended ended;
  const Streams streams{.out = out.get(), .err = [&](std::string_view b) { ended.err += b; }};
  ended.exit_code = Run(arguments, streams);
  ended.out = out.text();
  return ended;
}

TEST_CASE("wrong directories are wrong usage, whichever command they are given to") {
  const testing::TempDir dir;
  std::filesystem::create_directory(dir.Sub("used"));
  testing::WriteStringToFile(dir.Sub("used/notes"), "mine");
  for (const Command command : {Command::kBackup, Command::kRestore, Command::kRepair}) {
    CAPTURE(static_cast<int>(command));
    Arguments arguments = Of(command);
    const bool restores = command == Command::kRestore;
    // No ledger and no backup is there.
    (restores ? arguments.from : arguments.data_dir) = dir.Sub("used");
    (restores ? arguments.data_dir : arguments.to) = dir.Sub("new");
    const Ended ended = RunAlone(arguments);
    CHECK(ended.exit_code == kExitUsage);
    CHECK_MESSAGE(ended.err.find(dir.Sub("used")) != std::string::npos, ended.err);
    CHECK_FALSE(std::filesystem::exists(dir.Sub("new")));
  }
}

TEST_CASE("verify refuses a backup whose manifest a restore would refuse, behind the ledger") {
  const testing::TempDir dir;
  {
    backup::ServedLedger served(dir.Sub("data"));
    served.Rules();
    served.Take("alice", 3);
  }
  const std::atomic<bool> never{false};
  const auto made = backup::MakeBackupAtRest(dir.Sub("data"), dir.Sub("backup"), "test 1",
                                             backup::VerifyCopy, never);
  REQUIRE_MESSAGE(made.ok(), made.status().ToString());
  Arguments arguments = Of(Command::kVerify);
  arguments.data_dir = dir.Sub("backup");
  const Ended whole = RunAlone(arguments);
  CHECK(whole.exit_code == kExitOk);
  CHECK(whole.err.empty());

  const std::string path = dir.Sub("backup/backup.json");
  const std::string json = testing::ReadFileToString(path);
  std::string edited = json;
  edited.replace(json.find("test 1"), 6, "test 2");
  for (const std::string& damaged : {std::string(), json.substr(0, json.size() / 2), edited}) {
    testing::WriteStringToFile(path, damaged);
    const Ended ended = RunAlone(arguments);
    CHECK(ended.exit_code == kExitCorruption);
    CHECK(ended.out.starts_with("ledger ok: 3 tokens"));
    CHECK_MESSAGE(ended.err.starts_with("nowcalls-admin: the backup cannot be restored: " + path),
                  ended.err);
    CHECK(ended.err.find("`nowcalls-admin repair`") != std::string::npos);
  }
  // One that is not finished, or has lost it, is told of in a note.
  std::filesystem::remove(path);
  const Ended without = RunAlone(arguments);
  CHECK(without.exit_code == kExitOk);
  CHECK(without.err.starts_with("nowcalls-admin: note: "));
}

TEST_CASE("a file of rules that is absent is wrong usage, one that cannot be read is an error") {
  const testing::TempDir dir;
  for (const Command command : {Command::kRulesCheck, Command::kRulesDiff, Command::kRulesLoad}) {
    Arguments arguments = Of(command);
    for (const std::string& wrong : {dir.Sub("absent.json"), dir.path()}) {
      arguments.file = wrong;
      CHECK(RunAlone(arguments).exit_code == kExitUsage);
    }
    arguments.file = "/proc/self/mem";
    const Ended ended = RunAlone(arguments);
    CHECK(ended.exit_code == kExitIoError);
    CHECK(ended.err.starts_with("nowcalls-admin: cannot read /proc/self/mem: "));
  }
}

TEST_CASE("rules check exits with 1 under --strict if anything is warned of") {
  const testing::TempDir dir;
  Arguments arguments = Of(Command::kRulesCheck);
  arguments.file = dir.Sub("rules.json");
  const auto ended = [&](const std::string& count, const std::string& more, bool strict) {
    testing::WriteStringToFile(arguments.file,
                               R"([{"resource":"r","clusterMode":true,"count":)" + count + more +
                                   R"(,"clusterConfig":{"flowId":1,"thresholdType":1}},
                           {"resource":"local","count":1,"clusterMode":false}])");
    arguments.strict = strict;
    return RunAlone(arguments);
  };
  CHECK(ended("5", "", true).exit_code == kExitOk);  // A skipped rule says what it is.
  CHECK(ended("5", R"(,"limitApp":"appA")", false).exit_code == kExitOk);
  const Ended warned = ended("0.5", R"(,"limitApp":"appA")", true);
  CHECK(warned.exit_code == kExitFailure);
  CHECK(warned.err ==
        "nowcalls-admin: " + arguments.file + " has 2 warnings, and --strict takes none\n");
  CHECK(warned.out.find("limitApp \"appA\" has no effect here") != std::string::npos);
  const Ended beyond = ended("1000000", "", true);
  CHECK(beyond.exit_code == kExitFailure);
  CHECK(beyond.out.find("1000000 in 1s is more than the 30000 requests a second") !=
        std::string::npos);
}

}  // namespace
}  // namespace nowcalls::admin
