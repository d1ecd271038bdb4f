#include "wire/rows.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/limits.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {
namespace {

constexpr std::array kEndReasons = {
    EndReason::kReleased,        EndReason::kReleasedLate, EndReason::kClientOffline,
    EndReason::kResourceTimeout, EndReason::kRuleRemoved,  EndReason::kAdmin,
    EndReason::kCancelled,
};
static_assert(kEndReasons.size() == kEndReasonCount - 1);

void PackField(std::string_view key, const std::string& value, Packer* packer) {
  PackString(key, packer);
  PackString(value, packer);
}
void PackField(std::string_view key, uint64_t value, Packer* packer) {
  PackString(key, packer);
  packer->pack_uint64(value);
}
void PackField(std::string_view key, int64_t value, Packer* packer) {
  PackString(key, packer);
  packer->pack_int64(value);
}
void PackField(std::string_view key, bool value, Packer* packer) {
  PackString(key, packer);
  value ? packer->pack_true() : packer->pack_false();
}
template <typename T>
void PackField(std::string_view key, const std::optional<T>& value, Packer* packer) {
  if (value) PackField(key, *value, packer);
}

void PackRow(const TokenRow& row, Packer* packer) {
  packer->pack_map(9 + (row.online ? 1 : 0));
  PackField("token_id", row.token_id, packer);
  PackField("flow_id", row.flow_id, packer);
  PackField("namespace", row.name_space, packer);
  PackField("client_id", row.client_id, packer);
  PackField("session", row.session, packer);
  PackField("count", uint64_t{row.count}, packer);
  PackField("fence", row.fence, packer);
  PackField("issued_ms", row.issued_ms, packer);
  PackField("deadline_ms", row.deadline_ms, packer);
  PackField("online", row.online, packer);
}

// Those that are not zero: a flow meets few of its limits.
void PackLimits(std::string_view key, const uint64_t (&counts)[kRefusedByCount], Packer* packer) {
  PackString(key, packer);
  packer->pack_map(static_cast<uint32_t>(std::count_if(std::begin(counts), std::end(counts),
                                                       [](uint64_t count) { return count > 0; })));
  for (size_t i = 0; i < std::size(counts); ++i) {
    if (counts[i] > 0) PackField(RefusedByName(static_cast<RefusedBy>(i)), counts[i], packer);
  }
}

void PackCounters(const FlowCounters& counters, Packer* packer) {
  packer->pack_map(9);
  PackField("granted", counters.granted, packer);
  PackLimits("refused", counters.refused, packer);
  PackLimits("shadow_refused", counters.shadow_refused, packer);
  PackField("queued", counters.queued, packer);
  PackField("granted_from_queue", counters.granted_from_queue, packer);
  PackField("longest_wait_ms", counters.longest_wait_ms, packer);
  PackField("kept", counters.kept, packer);
  PackString("ended", packer);
  packer->pack_map(static_cast<uint32_t>(kEndReasons.size()));
  for (const EndReason reason : kEndReasons) {
    PackField(EndReasonName(reason), counters.ended[static_cast<size_t>(reason)], packer);
  }
  PackString("held_ms", packer);
  packer->pack_map(4);
  PackField("p50", counters.held_p50_ms, packer);
  PackField("p90", counters.held_p90_ms, packer);
  PackField("p99", counters.held_p99_ms, packer);
  PackField("longest", counters.held_longest_ms, packer);
}

void PackRow(const FlowRow& row, Packer* packer) {
  const int optional_fields = (row.level ? 1 : 0) + (row.sessions ? 1 : 0) +
                              (row.oldest_issued_ms ? 1 : 0) + (row.waiting_since_ms ? 1 : 0) +
                              (row.counters ? 1 : 0);
  packer->pack_map(static_cast<uint32_t>(8 + optional_fields));
  PackField("flow_id", row.flow_id, packer);
  PackField("namespace", row.name_space, packer);
  PackField("resource", row.resource, packer);
  PackField("removed", row.removed, packer);
  PackField("draining", row.draining, packer);
  PackField("level", row.level, packer);
  PackField("now_calls", row.now_calls, packer);
  PackField("tokens", row.tokens, packer);
  PackField("waiters", row.waiters, packer);
  PackField("waiting_since_ms", row.waiting_since_ms, packer);
  PackField("sessions", row.sessions, packer);
  PackField("oldest_issued_ms", row.oldest_issued_ms, packer);
  if (row.counters) {
    PackString("counters", packer);
    PackCounters(*row.counters, packer);
  }
}

void PackRow(const SessionRow& row, Packer* packer) {
  const int optional_fields = (row.online ? 1 : 0) + (row.offline_since_ms ? 1 : 0);
  packer->pack_map(static_cast<uint32_t>(8 + optional_fields));
  PackField("session", row.session, packer);
  PackField("namespace", row.name_space, packer);
  PackField("client_id", row.client_id, packer);
  PackField("kind", row.kind, packer);
  PackField("online", row.online, packer);
  PackField("connections", uint64_t{row.connections}, packer);
  PackField("tokens", row.tokens, packer);
  PackField("now_calls", row.now_calls, packer);
  PackField("opened_ms", row.opened_ms, packer);
  PackField("offline_since_ms", row.offline_since_ms, packer);
}

void PackRow(const HistoryRow& row, Packer* packer) {
  packer->pack_map(13);
  PackField("sequence", row.sequence, packer);
  PackField("ended_ms", row.ended_ms, packer);
  PackField("reason", row.reason, packer);
  PackField("token_id", row.token_id, packer);
  PackField("flow_id", row.flow_id, packer);
  PackField("namespace", row.name_space, packer);
  PackField("client_id", row.client_id, packer);
  PackField("session", row.session, packer);
  PackField("count", uint64_t{row.count}, packer);
  PackField("fence", row.fence, packer);
  PackField("issued_ms", row.issued_ms, packer);
  PackField("held_ms", row.held_ms, packer);
  PackField("note", row.note, packer);
}

template <typename Row>
void EncodePage(uint32_t msgid, const std::vector<Row>& rows, uint64_t next_cursor,
                OutputBuffer* out) {
  Packer packer(*out);
  BeginPage(msgid, rows.size(), &packer);
  for (const Row& row : rows) PackRow(row, &packer);
  PackCursor(next_cursor, &packer);
}

bool ReadField(std::string_view key, FieldReader* fields, TokenRow* row) {
  if (key == "token_id") return fields->Required(key, &row->token_id);
  if (key == "flow_id") return fields->Required(key, &row->flow_id);
  if (key == "namespace") return fields->Required(key, &row->name_space);
  if (key == "client_id") return fields->Required(key, &row->client_id);
  if (key == "session") return fields->Required(key, &row->session);
  if (key == "count") return fields->Required(key, &row->count);
  if (key == "fence") return fields->Required(key, &row->fence);
  if (key == "issued_ms") return fields->Required(key, &row->issued_ms);
  if (key == "deadline_ms") return fields->Required(key, &row->deadline_ms);
  if (key == "online") return fields->Optional(key, &row->online);
  return fields->Skip(key);
}

bool ReadEnded(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  for (const EndReason reason : kEndReasons) {
    if (key != EndReasonName(reason)) continue;
    return fields->Required(key, &counters->ended[static_cast<size_t>(reason)]);
  }
  return fields->Skip(key);
}

bool ReadLimits(std::string_view key, FieldReader* fields, uint64_t (&counts)[kRefusedByCount]) {
  return fields->ForEachKey(key, [&](std::string_view limit) {
    for (size_t i = 1; i < std::size(counts); ++i) {
      if (limit == RefusedByName(static_cast<RefusedBy>(i))) {
        return fields->Required(limit, &counts[i]);
      }
    }
    return fields->Skip(limit);
  });
}

bool ReadHeld(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  if (key == "p50") return fields->Required(key, &counters->held_p50_ms);
  if (key == "p90") return fields->Required(key, &counters->held_p90_ms);
  if (key == "p99") return fields->Required(key, &counters->held_p99_ms);
  if (key == "longest") return fields->Required(key, &counters->held_longest_ms);
  return fields->Skip(key);
}

bool ReadCounter(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  if (key == "granted") return fields->Required(key, &counters->granted);
  if (key == "kept") return fields->Required(key, &counters->kept);
  if (key == "queued") return fields->Required(key, &counters->queued);
  if (key == "granted_from_queue") return fields->Required(key, &counters->granted_from_queue);
  if (key == "longest_wait_ms") return fields->Required(key, &counters->longest_wait_ms);
  if (key == "refused") return ReadLimits(key, fields, counters->refused);
  if (key == "shadow_refused") return ReadLimits(key, fields, counters->shadow_refused);
  if (key == "held_ms") {
    return fields->ForEachKey(
        key, [&](std::string_view name) { return ReadHeld(name, fields, counters); });
  }
  if (key == "ended") {
    return fields->ForEachKey(
        key, [&](std::string_view reason) { return ReadEnded(reason, fields, counters); });
  }
  return fields->Skip(key);
}

bool ReadField(std::string_view key, FieldReader* fields, FlowRow* row) {
  if (key == "flow_id") return fields->Required(key, &row->flow_id);
  if (key == "namespace") return fields->Required(key, &row->name_space);
  if (key == "resource") return fields->Required(key, &row->resource);
  if (key == "removed") return fields->Required(key, &row->removed);
  if (key == "draining") return fields->Required(key, &row->draining);
  if (key == "level") return fields->Optional(key, &row->level);
  if (key == "now_calls") return fields->Required(key, &row->now_calls);
  if (key == "tokens") return fields->Required(key, &row->tokens);
  if (key == "waiters") return fields->Required(key, &row->waiters);
  if (key == "waiting_since_ms") return fields->Optional(key, &row->waiting_since_ms);
  if (key == "sessions") return fields->Optional(key, &row->sessions);
  if (key == "oldest_issued_ms") return fields->Optional(key, &row->oldest_issued_ms);
  if (key != "counters") return fields->Skip(key);
  if (fields->TakeMissing()) return true;
  row->counters.emplace();
  return fields->ForEachKey(
      key, [&](std::string_view name) { return ReadCounter(name, fields, &*row->counters); });
}

bool ReadField(std::string_view key, FieldReader* fields, SessionRow* row) {
  if (key == "session") return fields->Required(key, &row->session);
  if (key == "namespace") return fields->Required(key, &row->name_space);
  if (key == "client_id") return fields->Required(key, &row->client_id);
  if (key == "kind") return fields->Required(key, &row->kind);
  if (key == "online") return fields->Optional(key, &row->online);
  if (key == "connections") return fields->Required(key, &row->connections);
  if (key == "tokens") return fields->Required(key, &row->tokens);
  if (key == "now_calls") return fields->Required(key, &row->now_calls);
  if (key == "opened_ms") return fields->Required(key, &row->opened_ms);
  if (key == "offline_since_ms") return fields->Optional(key, &row->offline_since_ms);
  return fields->Skip(key);
}

bool ReadField(std::string_view key, FieldReader* fields, HistoryRow* row) {
  if (key == "sequence") return fields->Required(key, &row->sequence);
  if (key == "ended_ms") return fields->Required(key, &row->ended_ms);
  if (key == "reason") return fields->Required(key, &row->reason);
  if (key == "token_id") return fields->Required(key, &row->token_id);
  if (key == "flow_id") return fields->Required(key, &row->flow_id);
  if (key == "namespace") return fields->Required(key, &row->name_space);
  if (key == "client_id") return fields->Required(key, &row->client_id);
  if (key == "session") return fields->Required(key, &row->session);
  if (key == "count") return fields->Required(key, &row->count);
  if (key == "fence") return fields->Required(key, &row->fence);
  if (key == "issued_ms") return fields->Required(key, &row->issued_ms);
  if (key == "held_ms") return fields->Required(key, &row->held_ms);
  if (key == "note") return fields->Required(key, &row->note);
  return fields->Skip(key);
}

template <typename Row>
bool ReadRow(FieldReader* fields, Row* row) {
  return fields->ForEachKey("row",
                            [&](std::string_view key) { return ReadField(key, fields, row); });
}

template <typename Row>
Result<Page<Row>> DecodeRows(std::string_view subject, std::string_view result) {
  RequestError error;
  FieldReader fields(subject, result, kReplyBytesMax, &error);
  Page<Row> page;
  const bool decoded = fields.OpenArray() &&
                       fields.ForEachElement("rows",
                                             [&] {
                                               page.rows.emplace_back();
                                               return ReadRow(&fields, &page.rows.back());
                                             }) &&
                       fields.Optional("next_cursor", &page.next_cursor) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return page;
}

}  // namespace

void EncodeTokenPage(uint32_t msgid, const std::vector<TokenRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out) {
  EncodePage(msgid, rows, next_cursor, out);
}

void EncodeFlowPage(uint32_t msgid, const std::vector<FlowRow>& rows, uint64_t next_cursor,
                    OutputBuffer* out) {
  EncodePage(msgid, rows, next_cursor, out);
}

void EncodeSessionPage(uint32_t msgid, const std::vector<SessionRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out) {
  EncodePage(msgid, rows, next_cursor, out);
}

void EncodeHistoryPage(uint32_t msgid, const std::vector<HistoryRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out) {
  EncodePage(msgid, rows, next_cursor, out);
}

void EncodeFlow(uint32_t msgid, const FlowRow& row, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  PackRow(row, &packer);
}

Result<Page<TokenRow>> DecodeTokenPage(std::string_view result) {
  return DecodeRows<TokenRow>("tokens answer", result);
}

Result<Page<FlowRow>> DecodeFlowPage(std::string_view result) {
  return DecodeRows<FlowRow>("flows answer", result);
}

Result<Page<SessionRow>> DecodeSessionPage(std::string_view result) {
  return DecodeRows<SessionRow>("sessions answer", result);
}

Result<Page<HistoryRow>> DecodeHistoryPage(std::string_view result) {
  return DecodeRows<HistoryRow>("history answer", result);
}

Result<FlowRow> DecodeFlowRow(std::string_view result) {
  RequestError error;
  FieldReader fields("flow answer", result, kReplyBytesMax, &error);
  FlowRow row;
  if (!ReadRow(&fields, &row) || !fields.Close()) return Status::Corruption(error.message);
  return row;
}

}  // namespace nowcalls::wire
