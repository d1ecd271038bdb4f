#include <doctest/doctest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "admin/commands.h"
#include "admin/offline_source.h"
#include "unit/admin/ledger_builder.h"
#include "unit/admin/string_output.h"
#include "wire/json.h"

namespace nowcalls::admin {
namespace {

const ClockSample kMachine{.boottime_ms = 180'500, .wall_ms = 0, .boot_id = {1}};

// One token with a short id, so that expected texts stay readable.
LedgerBuilder OneToken() {
  LedgerBuilder builder;
  builder.Rule("shop", GlobalRule(101, 10)).Session(1, "shop", "cart-1");
  ledger::Token token = builder.MakeToken(10, 101, 1, kSealedMs - 3000, 2);
  token.key.id = TokenId(77);
  return builder.Token(token);
}

struct Printed {
  std::string out;
  std::string err;
  Status status;
};

Printed PrintList(Command command, Format format, LedgerBuilder builder,
                  const RowFilter& filter = {}, bool busy = false, size_t columns = 0) {
  store::MemoryStore store = builder.Build();
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, kMachine, &progress);
  StringOutput out;
  Arguments arguments;
  arguments.command = command;
  arguments.filter = filter;
  arguments.flow_id = 101;
  arguments.busy = busy;
  out.get()->SetColumns(columns);
  Printed printed;
  printed.status = PrintListing(arguments, format, &source, out.get());
  printed.out = out.text();
  return printed;
}

Printed PrintVerified(std::optional<Format> format, LedgerBuilder builder, uint64_t problems_max) {
  store::MemoryStore store = builder.Build();
  Progress progress(false, "tokens", [](std::string_view) {});
  StringOutput out;
  Printed printed;
  Arguments arguments;
  arguments.format = format;
  arguments.problems_max = problems_max;
  const Streams streams{out.get(), [&](std::string_view bytes) { printed.err += bytes; }};
  const Result<bool> sound = PrintVerify(arguments, &store, &progress, streams);
  REQUIRE(sound.ok());
  if (!*sound) printed.status = Status::Corruption("");
  printed.out = out.text();
  return printed;
}

TEST_CASE("dump prints a token with all its fields") {
  CHECK(PrintList(Command::kDump, Format::kJsonl, OneToken()).out ==
        "{\"token_id\":77,\"flow_id\":101,\"namespace\":\"shop\",\"client_id\":\"cart-1\","
        "\"session\":1,\"count\":2,\"fence\":10,\"issued_ms\":997000,\"deadline_ms\":1001000,"
        "\"online\":null,\"token\":\"77\",\"param\":null,\"instance\":null}\n");
  CHECK(PrintList(Command::kDump, Format::kCsv, OneToken()).out ==
        "token_id,flow_id,namespace,client_id,session,count,fence,issued_ms,deadline_ms,online,"
        "token,param,instance\n"
        "77,101,shop,cart-1,1,2,10,997000,1001000,,77,,\n");
  CHECK(PrintList(Command::kDump, Format::kTable, OneToken()).out ==
        "TOKEN_ID  FLOW_ID  NAMESPACE  CLIENT_ID  COUNT  FENCE    AGE  EXPIRES_IN  ONLINE  PARAM\n"
        "      77      101  shop       cart-1         2     10  2m13s      -2m09s  -       -\n");
}

TEST_CASE("tokens prints what the filters leave") {
  CHECK(PrintList(Command::kTokens, Format::kJsonl, OneToken(), {.flow_id = 102}).out.empty());
  CHECK_FALSE(
      PrintList(Command::kTokens, Format::kJsonl, OneToken(), {.flow_id = 101}).out.empty());
}

TEST_CASE("stat prints one row a flow, null for what only a server knows") {
  CHECK(PrintList(Command::kStat, Format::kJsonl, OneToken()).out ==
        "{\"flow_id\":101,\"namespace\":\"shop\",\"resource\":\"resource-101\",\"now_calls\":2,"
        "\"level\":10,\"tokens\":1,\"oldest_issued_ms\":997000,\"removed\":false,\"waiters\":null,"
        "\"waiting_since_ms\":null,"
        "\"sessions\":null,\"granted\":null,\"refused\":null,\"refused_level\":null,"
        "\"refused_token_limit\":null,\"refused_client_cap\":null,"
        "\"refused_waiters_ahead\":null,\"refused_queue_full\":null,"
        "\"refused_queue_timeout\":null,\"refused_cancelled\":null,"
        "\"refused_superseded\":null,\"shadow_refused\":null,\"queued\":null,"
        "\"granted_from_queue\":null,\"longest_wait_ms\":null,\"kept\":null,\"reclaimed\":null,"
        "\"ended_released\":null,"
        "\"ended_released_late\":null,\"ended_client_offline\":null,"
        "\"ended_resource_timeout\":null,\"ended_rule_removed\":null,\"ended_admin\":null,"
        "\"ended_cancelled\":null,\"held_p50_ms\":null,\"held_p90_ms\":null,"
        "\"held_p99_ms\":null,\"held_longest_ms\":null,\"draining\":false,"
        "\"refused_draining\":null,\"refused_request_id\":null,\"refused_disk_low\":null,"
        "\"refused_over_level\":null,\"refused_namespace_qps\":null,\"refused_param\":null,"
        "\"refused_rate\":null,\"refused_key_limit\":null,\"rate_in_window\":null,\"rate_limit\":"
        "null,"
        "\"rate_window_ms\":null,\"rate_passed\":null,\"rate_borrowed\":null,"
        "\"rate_blocked\":null,\"rate_requests_passed\":null,"
        "\"rate_requests_blocked\":null,\"rate_values\":null,\"other_kind\":null,\"keys\":null,"
        "\"held_sum_ms\":null,\"held_count\":null,\"waited_p50_ms\":null,"
        "\"waited_p90_ms\":null,\"waited_p99_ms\":null,\"waited_sum_ms\":null,"
        "\"waited_count\":null,\"rate_values_forgotten\":null,\"kind\":\"flow\","
        "\"outcome_failed\":null,\"outcome_timeout\":null}\n");
  CHECK(PrintList(Command::kStat, Format::kTable, OneToken()).out ==
        "FLOW_ID  NAMESPACE  RESOURCE      NOW_CALLS  LEVEL  TOKENS  OLDEST  REMOVED  WAITERS  "
        "SESSIONS  GRANTED  REFUSED  RECLAIMED  DRAINING  RATE  RATE_LIMIT  OTHER_KIND  FAILED  "
        "TIMED_OUT\n"
        "    101  shop       resource-101          2     10       1   2m13s  no             -  "
        "       -        -        -          -  no           -           -           -       -  "
        "        -\n");
  CHECK(PrintList(Command::kStat, Format::kJsonl, OneToken(), {.name_space = "bank"}).out.empty());
}

TEST_CASE("stat of what is busy passes over flows without tokens and waiters") {
  LedgerBuilder builder = OneToken();
  builder.Rule("shop", GlobalRule(102, 10));
  CHECK(PrintList(Command::kStat, Format::kCsv, builder).out.find("\n102,") != std::string::npos);
  const std::string busy = PrintList(Command::kStat, Format::kCsv, builder, {}, /*busy=*/true).out;
  CHECK(busy.find("\n102,") == std::string::npos);
  CHECK(busy.find("\n101,") != std::string::npos);
}

TEST_CASE("the listings of a terminal of 80 columns have no longer lines") {
  LedgerBuilder builder = OneToken();
  builder.Rule("a-namespace-of-some-length", GlobalRule(INT64_MAX, 1e9));
  builder.Session(2, "shop", std::string(128, 'c'));
  ledger::Token token = builder.MakeToken(11, INT64_MAX, 2, kSealedMs - 3000, 2);
  builder.Token(token);
  for (const Command command : {Command::kDump, Command::kStat, Command::kTokens,
                                Command::kSessions, Command::kHistory, Command::kRulesList}) {
    const std::string table = PrintList(command, Format::kTable, builder, {}, false, 80).out;
    CAPTURE(table);
    CHECK(table.size() > 20);
    for (size_t at = 0; at < table.size();) {
      const size_t end = table.find('\n', at);
      std::string line = table.substr(at, end - at);
      std::erase_if(line, [](char c) { return (c & 0xc0) == 0x80; });
      CHECK(line.size() <= 80);
      at = end + 1;
    }
  }
}

TEST_CASE("the counters of a running server are flattened, with totals") {
  wire::FlowRow row;
  row.flow_id = 5;
  row.draining = true;
  row.counters.emplace();
  row.counters->granted = 20;
  row.counters->refused[static_cast<size_t>(RefusedBy::kLevel)] = 3;
  row.counters->refused[static_cast<size_t>(RefusedBy::kTokenLimit)] = 4;
  row.counters->refused[static_cast<size_t>(RefusedBy::kDraining)] = 5;
  row.counters->kept = 6;
  row.counters->ended[static_cast<size_t>(EndReason::kReleased)] = 10;
  row.counters->ended[static_cast<size_t>(EndReason::kClientOffline)] = 2;
  row.counters->ended[static_cast<size_t>(EndReason::kAdmin)] = 1;
  StringOutput out;
  Listing<wire::FlowRow> listing(Format::kJsonl, 0, out.get());
  REQUIRE(listing.Add(row).ok());
  CHECK(out.text().find("\"granted\":20,\"refused\":12,\"refused_level\":3,"
                        "\"refused_token_limit\":4,\"refused_client_cap\":0,"
                        "\"refused_waiters_ahead\":0,\"refused_queue_full\":0,"
                        "\"refused_queue_timeout\":0,\"refused_cancelled\":0,"
                        "\"refused_superseded\":0,\"shadow_refused\":0,\"queued\":0,"
                        "\"granted_from_queue\":0,\"longest_wait_ms\":0,\"kept\":6,\"reclaimed\":3,"
                        "\"ended_released\":10,\"ended_released_late\":0,"
                        "\"ended_client_offline\":2,\"ended_resource_timeout\":0,"
                        "\"ended_rule_removed\":0,\"ended_admin\":1,\"ended_cancelled\":0,") !=
        std::string::npos);
  CHECK(out.text().find("\"draining\":true,\"refused_draining\":5,") != std::string::npos);
}

TEST_CASE("calls a second have columns of their own, once somebody has asked for some") {
  wire::FlowRow row;
  row.rate = {.in_window = 7,
              .limit = 10,
              .window_ms = 1000,
              .passed = 70,
              .borrowed = 2,
              .blocked = 30,
              .requests_passed = 60,
              .requests_blocked = 20};
  row.other_kind = 5;
  StringOutput out;
  Listing<wire::FlowRow> listing(Format::kJsonl, 0, out.get());
  REQUIRE(listing.Add(row).ok());
  CHECK(out.text().find("\"rate_in_window\":7,\"rate_limit\":10,\"rate_window_ms\":1000,"
                        "\"rate_passed\":70,\"rate_borrowed\":2,\"rate_blocked\":30,"
                        "\"rate_requests_passed\":60,\"rate_requests_blocked\":20,"
                        "\"rate_values\":null,\"other_kind\":5,\"keys\":null,") !=
        std::string::npos);
}

TEST_CASE("each kind of refusal has a column, and together they are the sum") {
  wire::FlowRow row;
  row.counters.emplace();
  uint64_t sum = 0;
  for (size_t kind = 1; kind < kRefusedByCount; ++kind) {
    row.counters->refused[kind] = kind * 100;
    sum += kind * 100;
  }
  StringOutput out;
  Listing<wire::FlowRow> listing(Format::kJsonl, 0, out.get());
  REQUIRE(listing.Add(row).ok());
  const auto object = nlohmann::json::parse(out.text());
  CHECK(object.at("refused") == sum);
  for (size_t kind = 1; kind < kRefusedByCount; ++kind) {
    const std::string column =
        "refused_" + std::string(RefusedByName(static_cast<RefusedBy>(kind)));
    CAPTURE(column);
    REQUIRE(object.contains(column));
    CHECK(object.at(column) == kind * 100);
  }
}

TEST_CASE("flow prints details for people and one object for programs") {
  const std::string detail = PrintList(Command::kFlow, Format::kTable, OneToken()).out;
  CHECK(detail.find("flow_id                 101\n") == 0);
  CHECK(detail.find("\noldest_issued_ago       2m13s\n") != std::string::npos);
  CHECK(PrintList(Command::kFlow, Format::kJsonl, OneToken()).out ==
        PrintList(Command::kStat, Format::kJsonl, OneToken()).out);
  CHECK(PrintList(Command::kFlow, Format::kJsonl, LedgerBuilder()).status.code() ==
        StatusCode::kNotFound);
}

TEST_CASE("sessions prints who holds what") {
  CHECK(PrintList(Command::kSessions, Format::kTable, OneToken()).out ==
        "SESSION  NAMESPACE  CLIENT_ID  KIND   ONLINE  CONNECTIONS  TOKENS  NOW_CALLS    AGE  "
        "OFFLINE_FOR  WAITERS  LAST_MESSAGE  ADDRESSES\n"
        "      1  shop       cart-1     named  -                 -       1          2  3m10s  "
        "          -        -             -  -\n");
}

TEST_CASE("sessions prints those that are asked for") {
  LedgerBuilder builder = OneToken();
  builder.Session(2, "bank", "cart-1").Session(3, "shop", "cart-2");
  const auto clients = [&](const RowFilter& filter) {
    std::vector<int> sessions;
    std::istringstream lines(PrintList(Command::kSessions, Format::kJsonl, builder, filter).out);
    for (std::string line; std::getline(lines, line);) {
      sessions.push_back(nlohmann::json::parse(line).at("session"));
    }
    return sessions;
  };
  using Sessions = std::vector<int>;
  CHECK(clients({}) == Sessions{1, 2, 3});
  CHECK(clients({.client_id = "cart-1"}) == Sessions{1, 2});
  CHECK(clients({.name_space = "shop"}) == Sessions{1, 3});
  CHECK(clients({.client_id = "cart-1", .name_space = "shop"}) == Sessions{1});
}

TEST_CASE("history prints each end with all its fields") {
  LedgerBuilder builder = OneToken();
  ledger::HistoryEntry entry = builder.MakeEnd(1, 9, kSealedMs - 1000, EndReason::kAdmin);
  entry.token_id = TokenId(76);
  entry.note = "hung, \"again\"";
  builder.End(entry);
  CHECK(PrintList(Command::kHistory, Format::kJsonl, builder).out ==
        "{\"sequence\":1,\"ended_ms\":999000,\"reason\":\"admin\",\"token_id\":76,"
        "\"flow_id\":101,\"namespace\":\"shop\",\"client_id\":\"cart-1\",\"session\":1,"
        "\"count\":2,\"fence\":9,\"issued_ms\":996000,\"held_ms\":3000,"
        "\"note\":\"hung, \\\"again\\\"\",\"token\":\"76\",\"param\":null,"
        "\"instance\":null,\"outcome\":null}\n");
  CHECK(PrintList(Command::kHistory, Format::kCsv, builder).out ==
        "sequence,ended_ms,reason,token_id,flow_id,namespace,client_id,session,count,fence,"
        "issued_ms,held_ms,note,token,param,instance,outcome\n"
        "1,999000,admin,76,101,shop,cart-1,1,2,9,996000,3000,\"hung, \"\"again\"\"\",76,,,\n");
  CHECK(PrintList(Command::kHistory, Format::kTable, builder).out ==
        "ENDED_AGO  REASON  TOKEN_ID  FLOW_ID  NAMESPACE  CLIENT_ID  COUNT  FENCE  HELD  NOTE     "
        "      PARAM  OUTCOME\n"
        "    2m11s  admin         76      101  shop       cart-1         2      9  3.0s  hung, "
        "\"again\"  -      -\n");
}

TEST_CASE("rules list prints Sentinel's form with the namespace, or the main columns") {
  const std::string json = PrintList(Command::kRulesList, Format::kJsonl, OneToken()).out;
  CHECK(json ==
        "{\"namespace\":\"shop\"," + core::RuleToJson(GlobalRule(101, 10)).substr(1) + "\n");
  CHECK(PrintList(Command::kRulesList, Format::kCsv, OneToken()).out ==
        "namespace,flow_id,resource,count,threshold_type,resource_timeout_ms,"
        "client_offline_time_ms,max_per_client,shadow,acquire_refuse_strategy,kind,max_hold_ms,"
        "limit\n"
        "shop,101,resource-101,10,global,2000,2000,0,false,0,flow,0,10 in 1s\n");
  core::Rule rule = GlobalRule(101, 2.5);
  rule.max_per_client_percent = 25;
  rule.shadow = true;
  rule.acquire_refuse_strategy = 3;
  LedgerBuilder fraction;
  fraction.Rule("shop", rule);
  CHECK(PrintList(Command::kRulesList, Format::kTable, fraction).out ==
        "NAMESPACE  FLOW_ID  RESOURCE      COUNT  THRESHOLD  TIMEOUT  OFFLINE  PER_CLIENT  SHADOW  "
        "REFUSE  KIND  LIMIT\n"
        "shop           101  resource-101    2.5  global        2.0s     2.0s         25%  yes     "
        "     3  flow  2 in 1s\n");
}

TEST_CASE("rules list as JSON hides no character of a name, and stays what rules load takes") {
  core::Rule rule = GlobalRule(101, 1);
  rule.resource = "a\u202eb";  // NOLINT(misc-misleading-bidirectional)
  LedgerBuilder reordered;
  reordered.Rule("shop", rule);
  const std::string json = PrintList(Command::kRulesList, Format::kJsonl, reordered).out;
  CHECK(json.find("\"a\\u202eb\"") != std::string::npos);
  CHECK(nlohmann::json::parse(json).at("resource") == rule.resource);
}

TEST_CASE("info prints each figure by its path, or the document as it came") {
  const nlohmann::ordered_json info = {
      {"version", "1.2"}, {"ledger", {{"format", 1}}}, {"totals", {{"ended", {{"admin", 3}}}}}};
  wire::OutputBuffer reply;
  wire::EncodeJsonResult(7, info, &reply);
  // [1, 7, nil, result]: four bytes come before the result.
  const std::string_view encoded = reply.view().substr(4);
  const auto print = [&](Format format) {
    StringOutput out;
    REQUIRE(PrintInfo(format, encoded, out.get()).ok());
    return out.text();
  };
  CHECK(print(Format::kJsonl) == info.dump() + "\n");
  CHECK(print(Format::kCsv) == "name,value\nversion,1.2\nledger.format,1\ntotals.ended.admin,3\n");
  CHECK(print(Format::kTable) ==
        "NAME                VALUE\n"
        "version             1.2\n"
        "ledger.format       1\n"
        "totals.ended.admin  3\n");
}

TEST_CASE("info tells people how old the oldest token is, if there is one") {
  const auto print = [](Format format, int64_t oldest_ms) {
    const nlohmann::ordered_json info = {{"version", "1.2"},
                                         {"ledger", {{"ledger_ms", 10'000}}},
                                         {"counts", {{"oldest_issued_ms", oldest_ms}}}};
    wire::OutputBuffer reply;
    wire::EncodeJsonResult(7, info, &reply);
    StringOutput out;
    REQUIRE(PrintInfo(format, reply.view().substr(4), out.get()).ok());
    return out.text();
  };
  CHECK(print(Format::kTable, 4'800)
            .ends_with("\ncounts.oldest_issued_ms  4800  oldest token 5.2s\n"));
  CHECK(print(Format::kTable, 10'500).ends_with("  10500  oldest token 0ms\n"));
  CHECK(print(Format::kTable, 0).ends_with("\ncounts.oldest_issued_ms  0\n"));
  CHECK(print(Format::kCsv, 4'800).ends_with("\ncounts.oldest_issued_ms,4800\n"));
  CHECK(print(Format::kJsonl, 4'800).ends_with("{\"oldest_issued_ms\":4800}}\n"));
}

TEST_CASE("an answer to info that is no map is none, whatever the format") {
  for (const nlohmann::ordered_json& info :
       {nlohmann::ordered_json(), nlohmann::ordered_json(7), nlohmann::ordered_json::array({1})}) {
    wire::OutputBuffer reply;
    wire::EncodeJsonResult(7, info, &reply);
    for (const Format format : {Format::kTable, Format::kJsonl}) {
      StringOutput out;
      CHECK(PrintInfo(format, reply.view().substr(4), out.get()).ToString() ==
            "outcome_unknown: the server's answer to info was not understood: it is no map");
      CHECK(out.text().empty());
    }
  }
}

TEST_CASE("an answer to info that tells no version is of no server of nowcalls") {
  using nlohmann::ordered_json;
  const ordered_json strange[] = {ordered_json::object(), {{"a", 1}}, {{"version", 7}}};
  for (const ordered_json& info : strange) {
    CAPTURE(info.dump());
    wire::OutputBuffer reply;
    wire::EncodeJsonResult(7, info, &reply);
    for (const Format format : {Format::kTable, Format::kJsonl}) {
      StringOutput out;
      CHECK(PrintInfo(format, reply.view().substr(4), out.get()).ToString() ==
            "outcome_unknown: the server's answer to info was not understood: it tells no "
            "version; check HOST:PORT");
      CHECK(out.text().empty());
    }
  }
  StringOutput out;
  // A map whose key is a number.
  const Status status = PrintInfo(Format::kJsonl, std::string_view("\x81\x01\x02", 3), out.get());
  CHECK(status.code() == StatusCode::kOutcomeUnknown);
}

TEST_CASE("info shows any map of a server that tells its version") {
  using nlohmann::ordered_json;
  ordered_json strange[] = {{{"counts", ordered_json::array({1})}, {"ledger", 7}},
                            {{"counts", {{"oldest_issued_ms", "x"}}}},
                            {{"counts", {{"oldest_issued_ms", 5}}}}};
  for (ordered_json& info : strange) {
    info["version"] = "1.2";
    CAPTURE(info.dump());
    wire::OutputBuffer reply;
    wire::EncodeJsonResult(7, info, &reply);
    StringOutput out;
    CHECK(PrintInfo(Format::kTable, reply.view().substr(4), out.get()).ok());
    CHECK(out.text().starts_with("NAME"));
    CHECK(out.text().find("oldest token") == std::string::npos);
  }
}

TEST_CASE("what adds up shows no rows of a ledger that is damaged; dump shows what there is") {
  LedgerBuilder builder = OneToken();
  builder.Token(12, 101, 99, kSealedMs - 100);  // Of a session that is not there.
  builder.RuleText("shop", 102, "{");
  for (const Format format : {Format::kTable, Format::kJsonl, Format::kCsv}) {
    for (const Command command : {Command::kStat, Command::kSessions}) {
      const Printed printed = PrintList(command, format, builder);
      CHECK(printed.status.code() == StatusCode::kCorruption);
      CHECK(printed.out.empty());
    }
    const Printed dumped = PrintList(Command::kDump, format, builder);
    CHECK(dumped.status.code() == StatusCode::kCorruption);
    CHECK(dumped.out.find("77") != std::string::npos);
  }
}

TEST_CASE("a listing ends when the output fails") {
  store::MemoryStore store = SampleLedger().Build();
  Progress progress(false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, kMachine, &progress);
  StringOutput out;
  out.FailWith(EPIPE);
  out.get()->Write("x");
  out.get()->Flush();
  Arguments arguments;
  arguments.command = Command::kDump;
  CHECK(PrintListing(arguments, Format::kJsonl, &source, out.get()).code() == StatusCode::kIoError);
}

TEST_CASE("verify says that a sound ledger is sound") {
  const Printed text = PrintVerified(std::nullopt, SampleLedger(), 100);
  CHECK(text.status.ok());
  CHECK(text.out ==
        "ledger ok: 3 tokens with nowCalls 7, 2 sessions, 3 rules, 0 history rows, sealed by batch "
        "7\n");
  CHECK(PrintVerified(Format::kJsonl, SampleLedger(), 100).out ==
        "{\"summary\":\"ok\",\"problems\":0,\"problems_by_kind\":{},\"tokens\":3,\"now_calls\":7,"
        "\"sessions\":2,\"rules\":3,\"history\":0,\"batch_number\":7,\"warnings\":0}\n");
}

TEST_CASE("verify tells of times of the future, and calls the ledger sound") {
  LedgerBuilder builder = SampleLedger();
  builder.mark.ledger_ms = kSealedMs + 1;
  const Printed text = PrintVerified(Format::kTable, builder, 100);
  CHECK(text.status.ok());
  CHECK(text.out.find("future: default 636c6f636b: the clock mark is at 1000001 ms") == 0);
  CHECK(text.out.find("\nledger ok: 1 warning (1 future) in 3 tokens") != std::string::npos);
}

TEST_CASE("verify prints each problem with its place, and how many there are") {
  LedgerBuilder builder = OneToken();
  builder.seal.live_count_sum = 1;
  const Printed text = PrintVerified(Format::kTable, builder, 1);
  CHECK_FALSE(text.status.ok());
  CHECK(
      text.out.find("token_id: tokens_short 00000000000f4628000000000000004d: token 77 (flow 101, "
                    "session 1, fence 10) has not the id of its fence") == 0);
  CHECK(text.out.ends_with(
      "\nand 1 more\nledger damaged: 2 problems (1 token_id, 1 seal) in 1 token with nowCalls 2, "
      "1 session, 1 rule, 0 history rows, sealed by batch 7\n"));
}

TEST_CASE("verify's problems are rows for programs") {
  LedgerBuilder builder = SampleLedger();
  builder.seal.live_count_sum = 1;
  const Printed json = PrintVerified(Format::kJsonl, builder, 100);
  CHECK(json.out.find("{\"problem\":\"seal\",\"family\":\"default\",\"key\":\"7365616c\","
                      "\"detail\":\"the sum of counts is 7, but batch 7 was sealed over 1\"}\n"
                      "{\"summary\":\"damaged\",\"problems\":1,"
                      "\"problems_by_kind\":{\"seal\":1},") == 0);
  const Printed csv = PrintVerified(Format::kCsv, builder, 100);
  CHECK(csv.out ==
        "problem,family,key,detail\n"
        "seal,default,7365616c,\"the sum of counts is 7, but batch 7 was sealed over 1\"\n");
  CHECK(csv.err.find("ledger damaged: 1 problem (1 seal) in 3 tokens") == 0);
}

TEST_CASE("params prints the values of a flow, each as what it is, the most calls first") {
  LedgerBuilder builder = OneToken();
  const auto add = [&](uint64_t fence, const ParamValue& value, uint32_t count) {
    ledger::Token token = builder.MakeToken(fence, 101, 1, kSealedMs - 1000, count);
    token.param = value;
    builder.Token(token);
  };
  add(30, {ParamType::kString, "5"}, 1);
  add(31, {ParamType::kInt, std::string("\0\0\0\5", 4)}, 2);
  add(32, {ParamType::kBoolean, "\1"}, 4);
  add(33, {ParamType::kDouble, std::string("\x3f\xe0\0\0\0\0\0\0", 8)}, 3);
  add(34, {ParamType::kFloat, std::string("\x7f\x80\0\0", 4)}, 1);
  store::MemoryStore store = builder.Build();
  Progress progress(/*enabled=*/false, "tokens", [](std::string_view) {});
  OfflineSource source(&store, {}, &progress);
  std::string out;
  const Status listed = source.Params(101, 10, /*by_minute=*/false, [&](const wire::ParamRow& row) {
    StringOutput line;
    Listing<wire::ParamRow> listing(Format::kJsonl, 0, line.get());
    REQUIRE(listing.Add(row).ok());
    out += line.text();
    return Status::Ok();
  });
  CHECK(listed.ToString() == "ok");
  CHECK(out ==
        "{\"param\":true,\"now_calls\":4,\"tokens\":1,\"level\":null,\"waiters\":null,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n"
        "{\"param\":0.5,\"now_calls\":3,\"tokens\":1,\"level\":null,\"waiters\":null,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n"
        "{\"param\":5,\"now_calls\":2,\"tokens\":1,\"level\":null,\"waiters\":null,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n"
        "{\"param\":\"Infinity\",\"now_calls\":1,\"tokens\":1,\"level\":null,\"waiters\":null,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n"
        "{\"param\":\"5\",\"now_calls\":1,\"tokens\":1,\"level\":null,\"waiters\":null,"
        "\"passed\":null,\"blocked\":null,\"minute_passed\":null,\"minute_blocked\":null}\n");
}

}  // namespace
}  // namespace nowcalls::admin
