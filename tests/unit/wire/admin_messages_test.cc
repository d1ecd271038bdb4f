// The methods of administrators and the history: golden bytes in both directions, and what is
// refused.
#include "wire/admin_messages.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "unit/wire/golden_vectors.h"
#include "unit/wire/pack.h"
#include "wire/client_messages.h"
#include "wire/cluster_messages.h"
#include "wire/rows.h"
#include "wire/splitter.h"

namespace nowcalls::wire {
namespace {

constexpr uint64_t kToken = 0x1122334455667788;

// What is wrong with parameters; empty when nothing is.
template <typename Params>
std::string Refusal(bool (*decode)(std::string_view, Params*, RequestError*),
                    const std::string& params) {
  Params out;
  RequestError error;
  if (decode(params, &out, &error)) return "";
  return std::string(ErrorCodeName(error.code)) + " " + error.message;
}

HistoryRow SampleRow() {
  HistoryRow row;
  row.sequence = 41;
  row.ended_ms = 1'700'000'005'123;
  row.reason = "admin";
  row.token_id = kToken;
  row.flow_id = 111;
  row.name_space = "shop";
  row.client_id = "worker-7";
  row.session = 12;
  row.count = 2;
  row.fence = 13;
  row.issued_ms = 1'700'000'000'123;
  row.held_ms = 5000;
  row.note = "hung job";
  return row;
}

TEST_CASE("a client's requests to administrate are the golden bytes") {
  CheckBytes(Requests(), "history", [](auto* o) {
    EncodePageRequest(17, Method::kHistory, {100, 42}, o);
  });
  CheckBytes(Requests(), "reclaim_client", [](auto* o) {
    EncodeReclaimClientRequest(18, {"shop", "worker-7", "hung job", 1000}, o);
  });
  CheckBytes(Requests(), "reclaim_client_instance", [](auto* o) {
    EncodeReclaimClientRequest(18, {"shop", "worker-7", "hung job", 1000, 5}, o);
  });
  CheckBytes(Requests(), "reclaim_flow", [](auto* o) {
    EncodeReclaimFlowRequest(19, {111, "hung job", 500}, o);
  });
  CheckBytes(Requests(), "purge", [](auto* o) { EncodePurgeRequest(20, {111, 1000}, o); });
  CheckBytes(Requests(), "purge_with_reason", [](auto* o) {
    EncodePurgeRequest(20, {111, 1000, "old rule"}, o);
  });
  CheckBytes(Requests(), "drain", [](auto* o) { EncodeDrainRequest(21, {111, true}, o); });
  CheckBytes(Requests(), "drain_with_reason", [](auto* o) {
    EncodeDrainRequest(21, {111, true, "upgrade"}, o);
  });
  CheckBytes(Requests(), "reclaim_namespace", [](auto* o) {
    EncodeReclaimNamespaceRequest(32, {"shop", "hung job", 500}, o);
  });
  CheckBytes(Requests(), "drain_namespace", [](auto* o) {
    EncodeDrainNamespaceRequest(33, {"shop", true, "upgrade", 1000, 112}, o);
  });
  CheckBytes(Requests(), "reclaim_flow_of_kind", [](auto* o) {
    EncodeReclaimFlowRequest(19, {111, "hung job", 500, FlowKind::kValue}, o);
  });
  CheckBytes(Requests(), "purge_of_kind", [](auto* o) {
    EncodePurgeRequest(20, {111, 1000, "", FlowKind::kFlow}, o);
  });
  CheckBytes(Requests(), "drain_of_kind", [](auto* o) {
    EncodeDrainRequest(21, {111, true, "upgrade", FlowKind::kValue}, o);
  });
  CheckBytes(Requests(), "backup",
             [](auto* o) { EncodeBackupRequest(22, {"/var/backups/nowcalls-1"}, o); });
  CheckBytes(Requests(), "copy", [](auto* o) { EncodePlainRequest(36, Method::kCopy, o); });
  CheckBytes(Requests(), "copy_piece", [](auto* o) {
    EncodeCopyPieceRequest(37, {"ledger/000012.sst", 262144}, o);
  });
  CheckBytes(Requests(), "cluster", [](auto* o) { EncodePlainRequest(38, Method::kCluster, o); });
  CheckBytes(Requests(), "handover", [](auto* o) { EncodePlainRequest(39, Method::kHandover, o); });
}

TEST_CASE("the server reads the golden requests to administrate") {
  RequestError error;
  PageParams page;
  REQUIRE(DecodePage(Method::kHistory, Params("history", Method::kHistory), &page, &error));
  CHECK(page.limit == 100);
  CHECK(page.cursor == 42);
  ReclaimClientParams client;
  REQUIRE(DecodeReclaimClient(Params("reclaim_client", Method::kReclaimClient), &client, &error));
  CHECK(client.name_space == "shop");
  CHECK(client.client_id == "worker-7");
  CHECK(client.reason == "hung job");
  CHECK(client.limit == 1000);
  CHECK_FALSE(client.instance.has_value());
  REQUIRE(DecodeReclaimClient(Params("reclaim_client_instance", Method::kReclaimClient), &client,
                              &error));
  CHECK(client.instance == 5);
  ReclaimFlowParams flow;
  REQUIRE(DecodeReclaimFlow(Params("reclaim_flow", Method::kReclaimFlow), &flow, &error));
  CHECK(flow.flow_id == 111);
  CHECK(flow.reason == "hung job");
  CHECK(flow.limit == 500);
  PurgeParams purge;
  REQUIRE(DecodePurge(Params("purge", Method::kPurge), &purge, &error));
  CHECK(purge.flow_id == 111);
  CHECK(purge.limit == 1000);
  CHECK(purge.reason.empty());
  REQUIRE(DecodePurge(Params("purge_with_reason", Method::kPurge), &purge, &error));
  CHECK(purge.limit == 1000);
  CHECK(purge.reason == "old rule");
  DrainParams drain;
  REQUIRE(DecodeDrain(Params("drain", Method::kDrain), &drain, &error));
  CHECK(drain.flow_id == 111);
  CHECK(drain.on);
  CHECK(drain.reason.empty());
  REQUIRE(DecodeDrain(Params("drain_with_reason", Method::kDrain), &drain, &error));
  CHECK(drain.on);
  CHECK(drain.reason == "upgrade");
  ReclaimNamespaceParams space;
  REQUIRE(DecodeReclaimNamespace(Params("reclaim_namespace", Method::kReclaimNamespace), &space,
                                 &error));
  CHECK(space.name_space == "shop");
  CHECK(space.reason == "hung job");
  CHECK(space.limit == 500);
  CHECK(space.first_flow == 0);
  DrainNamespaceParams drains;
  REQUIRE(
      DecodeDrainNamespace(Params("drain_namespace", Method::kDrainNamespace), &drains, &error));
  CHECK(drains.name_space == "shop");
  CHECK(drains.on);
  CHECK(drains.reason == "upgrade");
  CHECK(drains.limit == 1000);
  CHECK(drains.first_flow == 112);
  CHECK_FALSE(drain.kind.has_value());
  REQUIRE(DecodeReclaimFlow(Params("reclaim_flow_of_kind", Method::kReclaimFlow), &flow, &error));
  CHECK(flow.kind == FlowKind::kValue);
  REQUIRE(DecodePurge(Params("purge_of_kind", Method::kPurge), &purge, &error));
  CHECK(purge.reason.empty());
  CHECK(purge.kind == FlowKind::kFlow);
  REQUIRE(DecodeDrain(Params("drain_of_kind", Method::kDrain), &drain, &error));
  CHECK(drain.reason == "upgrade");
  CHECK(drain.kind == FlowKind::kValue);
  BackupParams backup;
  REQUIRE(DecodeBackup(Params("backup", Method::kBackup), &backup, &error));
  CHECK(backup.to == "/var/backups/nowcalls-1");
  CopyPieceParams piece;
  REQUIRE(DecodeCopyPiece(Params("copy_piece", Method::kCopyPiece), &piece, &error));
  CHECK(piece.file == "ledger/000012.sst");
  CHECK(piece.offset == 262144);
}

TEST_CASE("a piece is of a file of the copy, and of nothing else") {
  for (const char* name : {"..", "../x", "ledger/..", "ledger/../x", "/etc/passwd", "a/b/c", "a/",
                           ".x", "ledger/.x", "a b", "a\\b"}) {
    std::string params = "\x92";
    params += static_cast<char>(0xa0 + std::string_view(name).size());
    params += name;
    params += '\0';
    CopyPieceParams piece;
    RequestError error;
    CHECK_MESSAGE(!DecodeCopyPiece(params, &piece, &error), name);
    CHECK(error.code == ErrorCode::kBadParams);
  }
}

TEST_CASE("the server's answers to administrators are the golden bytes, and a client reads them") {
  CheckBytes(Replies(), "history", [](auto* o) { EncodeHistoryPage(17, {SampleRow()}, 41, o); });
  CheckBytes(Replies(), "reclaim_client", [](auto* o) { EncodeReclaimed(18, {1000, true}, o); });
  CheckBytes(Replies(), "drain", [](auto* o) { EncodeDrain(21, {TokenStatus::kOk, 2, 1}, o); });
  CheckBytes(Replies(), "reclaim_namespace", [](auto* o) {
    EncodeReclaimNamespace(32, {500, 112}, o);
  });
  CheckBytes(Replies(), "drain_namespace", [](auto* o) {
    EncodeDrainNamespace(33, {TokenStatus::kOk, 7, 5, 2}, o);
  });
  CHECK(*DecodeReclaimNamespaceReply(ResultOf("reclaim_namespace")) ==
        ReclaimNamespaceReply{500, 112});
  CHECK(*DecodeDrainNamespaceReply(ResultOf("drain_namespace")) ==
        DrainNamespaceReply{TokenStatus::kOk, 7, 5, 2});
  const BackupReply made{7, 3, 5, 2, 4, 1, 9, 123456};
  CheckBytes(Replies(), "backup", [&](auto* o) { EncodeBackup(22, made, o); });
  CHECK(*DecodeBackupReply(ResultOf("backup")) == made);
  CheckBytes(Replies(), "copy_piece", [](auto* o) { EncodeCopyPiece(37, "abc", o); });
  CHECK(*DecodeCopyPieceReply(ResultOf("copy_piece")) == "abc");
  CHECK(DecodeCopyPieceReply("\xa3"
                             "abc")
            .status()
            .code() == StatusCode::kCorruption);
  CheckBytes(Replies(), "acquire_draining", [](auto* o) {
    EncodeAcquire(4, {TokenStatus::kBlocked, 0, 0, 1, 2, 0, RefusedBy::kDraining}, o);
  });
  const Result<Page<HistoryRow>> history = DecodeHistoryPage(ResultOf("history"));
  REQUIRE(history.ok());
  CHECK(history->rows == std::vector<HistoryRow>{SampleRow()});
  CHECK(history->next_cursor == 41);
  CHECK(*DecodeReclaimedReply(ResultOf("reclaim_client")) == ReclaimedReply{1000, true});
  CHECK(*DecodeDrainReply(ResultOf("drain")) == DrainReply{TokenStatus::kOk, 2, 1});
  CHECK(DecodeAcquireReply(ResultOf("acquire_draining"))->refused_by == RefusedBy::kDraining);
}

ClusterReply SampleCluster() {
  return {.cluster = "c1",
          .prefix = "/p/",
          .term = 4,
          .writer = "a:1",
          .last_batch = 900,
          .log_bytes = 5'000,
          .log_bytes_max = 268'435'456,
          .members = {{.member = "0a",
                       .address = "a:1",
                       .version = "1.0",
                       .leads = true,
                       .applied = 900,
                       .synced = 890},
                      {.member = "0b",
                       .address = "b:1",
                       .version = "1.0",
                       .applied = 899,
                       .synced = 880,
                       .lag = 1,
                       .silent_ms = 300}}};
}

TEST_CASE("what a cluster says of itself is the golden bytes, and a client reads them") {
  CheckBytes(Replies(), "cluster", [](auto* o) { EncodeCluster(38, SampleCluster(), o); });
  CHECK(*DecodeClusterReply(ResultOf("cluster")) == SampleCluster());
  CheckBytes(Replies(), "handover", [](auto* o) { EncodePing(39, 4, o); });
  CHECK(*DecodeUintReply(ResultOf("handover")) == 4);
  // More than is known is ignored, less is not taken.
  const std::string later = PackArray("c1", "/p/", 4, "a:1", 9, 5, 6, Raw{PackArray()}, "later");
  CHECK(DecodeClusterReply(later)->last_batch == 9);
  CHECK(DecodeClusterReply(PackArray("c1", "/p/", 4, "a:1", 9, 5, 6)).status().code() ==
        StatusCode::kCorruption);
  const std::string nameless = PackArray(Raw{PackMap("address", "a:1")});
  CHECK(DecodeClusterReply(PackArray("c1", "/p/", 4, "a:1", 9, 5, 6, Raw{nameless}))
            .status()
            .message() == "cluster answer: members.member is missing in a row");
}

TEST_CASE("a limit may be left out and is within bounds") {
  ReclaimFlowParams flow;
  RequestError error;
  for (const std::string& params : {PackArray(5, "why"), PackArray(5, "why", Nil())}) {
    REQUIRE(DecodeReclaimFlow(params, &flow, &error));
    CHECK(flow.limit == 1000);
  }
  REQUIRE(DecodeReclaimFlow(PackArray(5, "why", 1), &flow, &error));
  CHECK(flow.limit == 1);
  CHECK(Refusal(DecodeReclaimFlow, PackArray(5, "why", 0)) ==
        "BAD_PARAMS reclaim_flow: limit must be 1..1000, got 0");
  CHECK(Refusal(DecodePurge, PackArray(5, 1001)) ==
        "BAD_PARAMS purge: limit must be 1..1000, got 1001");
  CHECK(Refusal(DecodeReclaimClient, PackArray("n", "c", "why", uint64_t{1} << 40)) ==
        "BAD_PARAMS reclaim_client: limit must be 1..1000, got 1099511627776");
  CHECK(Refusal(DecodePurge, PackArray(5, -1)) ==
        "BAD_PARAMS purge: limit must fit an unsigned 64-bit integer");
}

TEST_CASE("a reason may be left out where none is needed, but not be empty") {
  PurgeParams purge;
  DrainParams drain;
  RequestError error;
  for (const std::string& params : {PackArray(5), PackArray(5, 7), PackArray(5, Nil(), Nil())}) {
    REQUIRE(DecodePurge(params, &purge, &error));
    CHECK(purge.reason.empty());
  }
  const std::string unlimited = PackArray(5, Nil(), "why");
  REQUIRE(DecodePurge(unlimited, &purge, &error));
  CHECK(purge.limit == 1000);
  CHECK(purge.reason == "why");
  REQUIRE(DecodeDrain(PackArray(5, false, Nil()), &drain, &error));
  CHECK(drain.reason.empty());
  const std::string longest = PackArray(5, false, std::string(256, 'r'));
  REQUIRE(DecodeDrain(longest, &drain, &error));
  CHECK(drain.reason == std::string(256, 'r'));
  CHECK(Refusal(DecodePurge, PackArray(5, 6, "")) ==
        "BAD_PARAMS purge: reason must be 1..256 bytes, got 0");
  CHECK(Refusal(DecodeDrain, PackArray(5, true, std::string(257, 'r'))) ==
        "BAD_PARAMS drain: reason must be 1..256 bytes, got 257");
  CHECK(Refusal(DecodeDrain, PackArray(5, true, "a\nb"))
            .starts_with("BAD_PARAMS drain: reason must be UTF-8 without control"));
}

TEST_CASE("a kind is flow or value, and nothing else") {
  CHECK(Refusal(DecodeDrain, PackArray(5, true, Nil(), "values")) ==
        "BAD_PARAMS drain: kind must be flow or value, got 'values'");
  CHECK(Refusal(DecodePurge, PackArray(5, 6, "why", "")) ==
        "BAD_PARAMS purge: kind must be flow or value, got ''");
  CHECK(Refusal(DecodeReclaimFlow, PackArray(5, "why", 6, 1)) ==
        "BAD_PARAMS reclaim_flow: kind must be a str, got int");
  DrainParams drain;
  RequestError error;
  const std::string nil = PackArray(5, true, Nil(), Nil());
  REQUIRE(DecodeDrain(nil, &drain, &error));
  CHECK_FALSE(drain.kind.has_value());
}

TEST_CASE("wrong parameters of administrators are named") {
  CHECK(Refusal(DecodeBackup, PackArray()) == "BAD_PARAMS backup: to is missing");
  CHECK(Refusal(DecodeBackup, PackArray("")) ==
        "BAD_PARAMS backup: to must be 1..4096 bytes, got 0");
  CHECK(Refusal(DecodeBackup, PackArray("here")) ==
        "BAD_PARAMS backup: to must be an absolute path on the server's machine, got 'here'");
  CHECK(Refusal(DecodeBackup, PackArray("/a\nb"))
            .starts_with("BAD_PARAMS backup: to must be UTF-8 without control"));
  CHECK(Refusal(DecodeReclaimClient, PackArray("n")) ==
        "BAD_PARAMS reclaim_client: client_id is missing");
  CHECK(Refusal(DecodeReclaimClient, PackArray("", "c", "why")) ==
        "BAD_PARAMS reclaim_client: namespace must be 1..128 bytes, got 0");
  CHECK(Refusal(DecodeReclaimClient, PackArray("n", std::string(129, 'c'), "why")) ==
        "BAD_PARAMS reclaim_client: client_id must be 1..128 bytes, got 129");
  CHECK(Refusal(DecodeReclaimClient, PackArray("n", "c")) ==
        "BAD_PARAMS reclaim_client: reason is missing");
  CHECK(Refusal(DecodeReclaimClient, PackArray("n", "@127.0.0.1:5", "why")).empty());
  CHECK(Refusal(DecodeReclaimFlow, PackArray(5)) == "BAD_PARAMS reclaim_flow: reason is missing");
  CHECK(Refusal(DecodeReclaimFlow, PackArray(5, std::string(257, 'r'))) ==
        "BAD_PARAMS reclaim_flow: reason must be 1..256 bytes, got 257");
  CHECK(Refusal(DecodeReclaimFlow, PackArray(5, "a\nb"))
            .starts_with("BAD_PARAMS reclaim_flow: reason must be UTF-8 without control"));
  CHECK(Refusal(DecodePurge, PackArray()) == "BAD_PARAMS purge: flow_id is missing");
  CHECK(Refusal(DecodePurge, PackArray(5, 6, 7)) ==
        "BAD_PARAMS purge: reason must be a str, got int");
  CHECK(Refusal(DecodePurge, PackArray(5, 6, "why", "flow", 8)) ==
        "BAD_PARAMS purge takes at most 4 parameters, got 5");
  CHECK(Refusal(DecodeDrain, PackArray(5, true, "why", "flow", 8)) ==
        "BAD_PARAMS drain takes at most 4 parameters, got 5");
  CHECK(Refusal(DecodeReclaimNamespace, PackArray("n")) ==
        "BAD_PARAMS reclaim_namespace: reason is missing");
  CHECK(Refusal(DecodeReclaimNamespace, PackArray("n", "why", 1001)) ==
        "BAD_PARAMS reclaim_namespace: limit must be 1..1000, got 1001");
  CHECK(Refusal(DecodeReclaimNamespace, PackArray("n", "why", 1, uint64_t{1} << 63)) ==
        "BAD_PARAMS reclaim_namespace: cursor must fit a signed 64-bit integer");
  CHECK(Refusal(DecodeDrainNamespace, PackArray("n")) ==
        "BAD_PARAMS drain_namespace: on is missing");
  CHECK(Refusal(DecodeDrainNamespace, PackArray("n", true, Nil(), Nil(), Nil())).empty());
  CHECK(Refusal(DecodeDrain, PackArray(5)) == "BAD_PARAMS drain: on is missing");
  CHECK(Refusal(DecodeDrain, PackArray(5, 1)) == "BAD_PARAMS drain: on must be a bool, got int");
}

TEST_CASE("what is no answer to an administrator is corrupt, and more than known is ignored") {
  const auto why = [](const auto& result) {
    CHECK(result.status().code() == StatusCode::kCorruption);
    return result.status().message();
  };
  CHECK(why(DecodeReclaimedReply(PackArray(5))) == "reclaim answer: more is missing");
  CHECK(why(DecodeDrainReply(PackArray(1, 0, 0))) == "drain answer: status 1 is not known");
  CHECK(why(DecodeDrainReply("\xc0")) == "drain answer: it must be an array, got nil");
  CHECK(why(DecodeHistoryPage(PackArray(Raw{PackArray(PackMap("reason", 2))}, Nil()))) ==
        "history answer: row.reason must be a str, got int");
  CHECK(*DecodeReclaimedReply(PackArray(5, false, "later")) == ReclaimedReply{5, false});
  CHECK(DecodeDrainReply(PackArray(3, 0, 0, Nil()))->status == TokenStatus::kNoRuleExists);
}

TEST_CASE("the largest page of the history fits a client's limit") {
  HistoryRow row = SampleRow();
  row.sequence = row.token_id = row.session = row.fence = UINT64_MAX;
  row.ended_ms = row.issued_ms = row.held_ms = row.flow_id = INT64_MAX;
  row.reason = "resource_timeout";
  row.name_space = std::string(kNamespaceBytesMax, 'n');
  row.client_id = std::string(kClientIdBytesMax, 'c');
  row.note = std::string(kReasonBytesMax, 'r');
  const std::vector<HistoryRow> rows(kListRowsMax, row);
  OutputBuffer out;
  EncodeHistoryPage(1, rows, UINT64_MAX, &out);
  CHECK(out.size() <= kReplyBytesMax);
  MessageSplitter splitter(kReplyBytesMax);
  size_t size = 0;
  REQUIRE(splitter.Next(out.view(), &size) == MessageSplitter::Outcome::kMessage);
  CHECK(DecodeHistoryPage(DecodeResponse(out.view())->result)->rows == rows);
}

}  // namespace
}  // namespace nowcalls::wire
