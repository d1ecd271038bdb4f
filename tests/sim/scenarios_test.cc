// Crashes, disconnections and restarts told step by step, with everything that happens.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/scenario.h"

namespace nowcalls::sim {
namespace {

using Lines = Scenario::Lines;

SimRule Rule(double count = 2) { return {.flow = 1, .name_space = "shop", .count = count}; }

// The lines, one below the other, as doctest shows them when they differ.
std::string Text(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

#define CHECK_TOLD(scenario, ...) CHECK(Text((scenario).Told()) == Text(Lines{__VA_ARGS__}))

TEST_CASE("an acquire whose batch dies with the server was never granted") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Kill(/*batch_survives=*/false);
  CHECK(s.tokens_in_ledger() == 0);
  s.Start();
  s.Open(&anna);
  anna.Acquire(anna.unsettled().at(7));
  s.Settle();
  CHECK_TOLD(s, "anna: acquires flow 1 count 1 request id 7",
             "server: dies of crash, the batch under way is lost",  //
             "anna: is disconnected",                               //
             "server: ready with 0 tokens, 0 sessions",             //
             "server: batch 3 is durable, 3 records",               //
             "anna: connects as shop/anna",                         //
             "anna: has 0 tokens back",                             //
             "anna: acquires flow 1 count 1 request id 7",          //
             "server: batch 4 is durable, 3 records",               //
             "anna: has fence 2 of flow 1, now 1 of 2, to hold 4000 ms");
}

TEST_CASE("an acquire whose batch survives the server is granted, though nobody was told") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  s.Kill(/*batch_survives=*/true);
  CHECK(s.tokens_in_ledger() == 1);
  s.Start();
  s.Open(&anna);
  anna.Acquire(anna.unsettled().at(7));
  s.Settle();
  CHECK_TOLD(s, "anna: acquires flow 1 count 1 request id 7",        //
             "server: dies of crash, the batch under way survives",  //
             "anna: is disconnected",                                //
             "server: ready with 1 tokens, 1 sessions",              //
             "server: batch 4 is durable, 3 records",                //
             "anna: connects as shop/anna",                          //
             "anna: has 1 tokens back",                              //
             "anna: acquires flow 1 count 1 request id 7",           //
             "anna: has fence 2 of flow 1, now 1 of 2, to hold 3992 ms");
}

TEST_CASE("a batch under way may survive alone; what came behind it is lost") {
  Scenario s({Rule(5)});
  SimClient& anna = s.Client("anna");
  SimClient& bert = s.Client("bert");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .count = 2});
  s.Settle();
  bert.Acquire({.flow = 1, .count = 1});
  s.Settle();
  s.Kill(/*batch_survives=*/true);
  CHECK(s.tokens_in_ledger() == 1);
  s.Start();
  s.Open(&bert);
  bert.Acquire({.flow = 1, .count = 1});
  s.Settle();
  CHECK_TOLD(s, "anna: acquires flow 1 count 2",                     //
             "bert: acquires flow 1 count 1",                        //
             "server: dies of crash, the batch under way survives",  //
             "anna: is disconnected",                                //
             "bert: is disconnected",                                //
             "server: ready with 1 tokens, 1 sessions",              //
             "server: batch 4 is durable, 3 records",                //
             "bert: connects as shop/bert",                          //
             "bert: has 0 tokens back",                              //
             "bert: acquires flow 1 count 1",                        //
             "server: batch 5 is durable, 3 records",                //
             "bert: has fence 5 of flow 1, now 3 of 5, to hold 4000 ms");
}

TEST_CASE("a release that was not answered is done or not, as the ledger has it") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  s.server().HoldCommits(true);
  anna.Release(anna.held().front().token);
  s.Settle();
  s.Kill(/*batch_survives=*/true);
  CHECK(s.tokens_in_ledger() == 0);
  s.Start();
  s.Open(&anna);
  anna.Release(anna.held().front().token);
  s.Settle();
  CHECK_TOLD(s, "anna: releases",                                    //
             "server: dies of crash, the batch under way survives",  //
             "anna: is disconnected",                                //
             "server: ready with 0 tokens, 1 sessions",              //
             "server: batch 5 is durable, 4 records",                //
             "anna: connects as shop/anna",                          //
             "anna: has 0 tokens back",                              //
             "anna: releases",                                       //
             "anna: released: ALREADY_RELEASE");
}

TEST_CASE("who connects again from another port has his tokens back") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  s.Take(&anna, 1);
  anna.Hangup(/*politely=*/false);
  s.Pass(1'500);
  s.Open(&anna);
  s.Pass(1'500);  // Longer than clientOfflineTime since the connection broke.
  CHECK(s.tokens_in_ledger() == 2);
  anna.Keep(anna.held().front().token);
  s.Settle();
  anna.Release(anna.held().front().token);
  s.Settle();
  CHECK_TOLD(s, "anna: is disconnected",               //
             "anna: connects as shop/anna",            //
             "anna: has 2 tokens back",                //
             "anna: keeps",                            //
             "server: batch 5 is durable, 4 records",  //
             "anna: kept: OK",                         //
             "anna: releases",                         //
             "server: batch 6 is durable, 3 records",  // The call did not end well: history.
             "anna: released: RELEASE_OK");
}

TEST_CASE("who waits leaves the queue with the connection and comes back at its end") {
  Scenario s({Rule(1)});
  SimClient& anna = s.Client("anna");
  SimClient& bert = s.Client("bert");
  SimClient& carl = s.Client("carl");
  s.Take(&anna, 1);
  bert.Acquire({.flow = 1, .wait_ms = 3'000, .request_id = 1});
  s.Settle();
  carl.Acquire({.flow = 1, .wait_ms = 3'000, .request_id = 1});
  s.Settle();
  bert.Hangup(/*politely=*/false);
  s.Settle();
  s.Open(&bert);
  bert.Acquire(bert.unsettled().at(1));
  s.Settle();
  anna.Release(anna.held().front().token);
  s.Settle();
  carl.Release(carl.held().front().token);
  s.Settle();
  CHECK_TOLD(s, "bert: acquires flow 1 count 1 request id 1 wait 3000",   //
             "carl: acquires flow 1 count 1 request id 1 wait 3000",      //
             "bert: is disconnected",                                     //
             "bert: connects as shop/bert",                               //
             "bert: has 0 tokens back",                                   //
             "bert: acquires flow 1 count 1 request id 1 wait 3000",      //
             "anna: releases",                                            //
             "server: batch 4 is durable, 4 records",                     //
             "anna: released: RELEASE_OK",                                //
             "carl: has fence 6 of flow 1, now 1 of 1, to hold 4000 ms",  //
             "carl: releases",                                            //
             "server: batch 5 is durable, 4 records",                     //
             "carl: released: RELEASE_OK",                                //
             "bert: has fence 7 of flow 1, now 1 of 1, to hold 4000 ms");
}

TEST_CASE("a token whose deadline passes while the server is down is spared for its hold") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  s.Pass(1'000);
  s.Kill(/*batch_survives=*/false);
  s.Pass(5'000);
  s.Start();
  s.Open(&anna);
  s.Pass(3'800);
  CHECK(s.tokens_in_ledger() == 1);
  s.Pass(500);
  CHECK(s.tokens_in_ledger() == 0);
  anna.Keep(anna.held().front().token);
  s.Settle();
  CHECK_TOLD(s, "server: dies of crash, the batch under way is none",  //
             "anna: is disconnected",                                  //
             "server: ready with 1 tokens, 1 sessions",                //
             "server: batch 4 is durable, 3 records",                  //
             "server: batch 5 is durable, 3 records",                  //
             "anna: connects as shop/anna",                            //
             "anna: has 1 tokens back",                                //
             "server: batch 6 is durable, 5 records",                  //
             "anna: keeps",                                            //
             "anna: kept: ALREADY_RELEASE");
}

TEST_CASE("a reboot with a wall clock that was set back ends no token early, and skips fences") {
  Scenario s({Rule()});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  s.server().Reboot();
  s.Settle();
  s.world().machine().StepWall(-10LL * 365 * 24 * 3'600 * 1'000);
  s.Start();
  s.Open(&anna);
  s.Pass(3'000);
  CHECK(s.tokens_in_ledger() == 1);
  anna.Acquire({.flow = 1});
  s.Settle();
  CHECK_TOLD(s, "server: dies of reboot, the batch under way is none",   //
             "anna: is disconnected",                                    //
             "server: ready with 1 tokens, 1 sessions, after a reboot",  //
             "server: batch 4 is durable, 3 records",                    //
             "anna: connects as shop/anna",                              //
             "anna: has 1 tokens back",                                  //
             "anna: acquires flow 1 count 1",                            //
             "server: batch 5 is durable, 4 records",                    //
             "anna: has fence 1073741827 of flow 1, now 2 of 2, to hold 4000 ms");
}

TEST_CASE("a boot clock that is set back ends no token early, and stops neither start nor verify") {
  SimRule rule = Rule();
  rule.window_ms = 10'000;
  Scenario s({rule});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  s.Pass(1'000);
  anna.Request(1, 1, false, false);
  s.Pass(1'500);
  s.server().StepBootClockBack(2'000);
  // Until the boot clock has caught up, time stands still: the hold of 4 s is over 2 s later.
  anna.Request(1, 1, false, false);
  s.Pass(1'900);
  CHECK(s.tokens_in_ledger() == 1);
  SUBCASE("while the server runs") {}
  SUBCASE("and the server is killed") {
    s.Kill(/*batch_survives=*/false);
    s.Start();
    s.Open(&anna);
  }
  SUBCASE("and the server ends") {
    s.Terminate();
    s.Start();
    s.Open(&anna);
  }
  s.world().Audit();
  CHECK(s.tokens_in_ledger() == 1);
  s.Pass(15'000);  // The restart grace, too.
  CHECK(s.tokens_in_ledger() == 0);
}

TEST_CASE("a server that is killed while its time stands still ends no token early") {
  SimRule rule = Rule();
  rule.max_hold_ms = 1'000;
  Scenario s({rule});
  SimClient& anna = s.Client("anna");
  s.Pass(1'500);
  anna.Request(1, 1, false, false);  // Time is read. The next batch marks the clock, and no later.
  s.Settle();
  s.server().StepBootClockBack(60'000);
  s.Take(&anna, 1);
  s.Pass(2'000);
  s.Take(&anna, 1);
  s.Kill(/*batch_survives=*/false);
  s.Start();
  s.Open(&anna);
  s.Pass(500);
  CHECK(s.tokens_in_ledger() == 2);
  s.Pass(2'000);
  CHECK(s.tokens_in_ledger() == 0);
}

TEST_CASE("a rule that is removed while a token is out keeps counting it, across a restart") {
  Scenario s({Rule(1)});
  SimClient& anna = s.Client("anna");
  s.Take(&anna, 1);
  SimRule removed = Rule(1);
  removed.present = false;
  s.LoadRules({removed});
  s.Kill(/*batch_survives=*/false);
  s.Start();
  s.Open(&anna);
  anna.Acquire({.flow = 1});
  s.Settle();
  s.LoadRules({Rule(1)});
  anna.Acquire({.flow = 1});
  s.Settle();
  anna.Release(anna.held().front().token);
  s.Settle();
  const std::string log = "server: log: namespace shop: ";
  const std::string removal =
      "1 rule in force removed: acquires under it answer NO_RULE_EXISTS, for which Sentinel's "
      "clients let calls pass";
  const std::string idle =
      "rule 1 (resource \"r1\", flowId 1): maxQueueingTimeMs 700 has no effect here: only where "
      "acquireRefuseStrategy is 3 the server queues";
  CHECK_TOLD(s, "admin: loads shop []",                             //
             log + removal,                                         //
             "server: batch 4 is durable, 3 records",               //
             "admin: rules are loaded",                             //
             "server: dies of crash, the batch under way is none",  //
             "anna: is disconnected",                               //
             "server: ready with 1 tokens, 1 sessions",             //
             "server: batch 5 is durable, 3 records",               //
             "anna: connects as shop/anna",                         //
             "anna: has 1 tokens back",                             //
             "anna: acquires flow 1 count 1",                       //
             "anna: is refused flow 1: NO_RULE_EXISTS ",            //
             "admin: loads shop " + RulesJson({Rule(1)}, "shop"),   //
             log + idle,                                            //
             "server: batch 6 is durable, 3 records",               //
             "admin: rules are loaded",                             //
             "anna: acquires flow 1 count 1",                       //
             "anna: is refused flow 1: BLOCKED level",              //
             "anna: releases",                                      //
             "server: batch 7 is durable, 3 records",               //
             "anna: released: RELEASE_OK");
}

TEST_CASE("a grant whose client gave up is taken back by its cancel") {
  Scenario s({Rule(1)});
  SimClient& anna = s.Client("anna");
  SimClient& bert = s.Client("bert");
  s.server().HoldCommits(true);
  anna.Acquire({.flow = 1, .request_id = 7});
  s.Settle();
  anna.Hangup(/*politely=*/false);
  s.Settle();
  s.Open(&anna);
  anna.Cancel(7);
  bert.Acquire({.flow = 1, .wait_ms = 1'000});
  s.Settle();
  CHECK(bert.held().empty());
  s.server().HoldCommits(false);
  s.Settle();
  CHECK(s.tokens_in_ledger() == 1);
  s.Kill(/*batch_survives=*/false);
  s.Start();
  s.Open(&bert);
  CHECK_TOLD(s, "anna: acquires flow 1 count 1 request id 7",             //
             "anna: is disconnected",                                     //
             "anna: connects as shop/anna",                               //
             "anna: cancels request id 7",                                //
             "bert: acquires flow 1 count 1 wait 1000",                   //
             "server: batch 3 is durable, 3 records",                     //
             "server: batch 4 is durable, 4 records",                     //
             "anna: has 1 tokens back",                                   //
             "anna: cancelled: RELEASE_OK",                               //
             "bert: has fence 4 of flow 1, now 1 of 1, to hold 4000 ms",  //
             "server: dies of crash, the batch under way is none",        //
             "bert: is disconnected",                                     //
             "anna: is disconnected",                                     //
             "server: ready with 1 tokens, 2 sessions",                   //
             "server: batch 5 is durable, 4 records",                     //
             "bert: connects as shop/bert",                               //
             "bert: has 1 tokens back");
}

// Twenty calls in ten seconds.
SimRule LongWindow() {
  SimRule rule = Rule();
  rule.window_ms = 10'000;
  return rule;
}

TEST_CASE("an orderly end forgets no call of a long window") {
  Scenario s({LongWindow()});
  SimSentinel& java = s.Sentinel("java");
  java.Request(1, 15, /*prioritized=*/false, /*misfit=*/false);
  s.Settle();
  s.Terminate();
  s.Start();
  s.Open(&java);
  java.Request(1, 6, false, false);
  s.Settle();
  java.Request(1, 5, false, false);
  s.Settle();
  CHECK_TOLD(s, "java: requests 15 of flow 1",                          //
             "java: may call: OK",                                      //
             "server: SIGTERM",                                         //
             "server: batch 3 is durable, 3 records",                   //
             "java: is disconnected",                                   //
             "server: dies of terminate, the batch under way is none",  //
             "server: ready with 0 tokens, 0 sessions",                 //
             "server: batch 4 is durable, 3 records",                   //
             "java: connects as shop/@10.0.1.1:1002",                   //
             "java: sees 1 online",                                     //
             "java: requests 6 of flow 1",                              //
             "java: may call: BLOCKED",                                 //
             "java: requests 5 of flow 1",                              //
             "java: may call: OK");
}

TEST_CASE("a crash forgets the calls of a long window that were not yet written, and no others") {
  Scenario s({LongWindow()});
  SimSentinel& java = s.Sentinel("java");
  java.Request(1, 12, /*prioritized=*/false, /*misfit=*/false);
  s.Pass(1'005);
  java.Request(1, 8, false, false);
  s.Settle();
  s.Told();
  s.Kill(/*batch_survives=*/false);
  s.Start();
  s.Open(&java);
  java.Request(1, 9, false, false);
  s.Settle();
  java.Request(1, 8, false, false);
  s.Settle();
  CHECK_TOLD(s, "server: dies of crash, the batch under way is none",  //
             "java: is disconnected",                                  //
             "server: ready with 0 tokens, 0 sessions",                //
             "server: batch 4 is durable, 3 records",                  //
             "java: connects as shop/@10.0.1.1:1002",                  //
             "java: sees 1 online",                                    //
             "java: requests 9 of flow 1",                             //
             "java: may call: BLOCKED",                                //
             "java: requests 8 of flow 1",                             //
             "java: may call: OK");
}

TEST_CASE("a client of frames that comes back from another port releases what it holds") {
  Scenario s({Rule(1)});
  SimSentinel& java = s.Sentinel("java");
  SimSentinel& other = s.Sentinel("other");
  java.Acquire(1, 1, /*prioritized=*/false);
  s.Settle();
  java.Hangup(/*politely=*/false);
  s.Settle();
  s.Open(&java);
  other.Acquire(1, 1, false);
  s.Settle();
  java.Release(java.held().front());
  s.Settle();
  other.Acquire(1, 1, false);
  s.Settle();
  CHECK_TOLD(s, "java: acquires 1 of flow 1",          //
             "server: batch 3 is durable, 3 records",  //
             "java: has fence 3",                      //
             "java: is disconnected",                  //
             "java: connects as shop/@10.0.1.1:1002",  //
             "java: sees 2 online",                    //
             "other: acquires 1 of flow 1",            //
             "other: is refused: BLOCKED",             //
             "java: releases",                         //
             "server: batch 4 is durable, 3 records",  //
             "java: released: RELEASE_OK",             //
             "other: acquires 1 of flow 1",            //
             "server: batch 5 is durable, 3 records",  //
             "other: has fence 5");
}

}  // namespace
}  // namespace nowcalls::sim
