#include "wire/rows.h"

#include <tuple>
#include <utility>

#include "base/limits.h"
#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/param_list.h"
#include "wire/row_fields.h"

namespace nowcalls::wire {

// Lists of fields, here and below: the order is that on the wire. PROTOCOL.md documents them. Rows
// of flows are in flow_figures.cc.
template <>
inline constexpr auto kFieldsOf<TokenRow> = std::tuple{
    Field{"token_id", &TokenRow::token_id},
    Field{"flow_id", &TokenRow::flow_id},
    Field{"namespace", &TokenRow::name_space},
    Field{"client_id", &TokenRow::client_id},
    Field{"session", &TokenRow::session},
    Field{"count", &TokenRow::count},
    Field{"fence", &TokenRow::fence},
    Field{"issued_ms", &TokenRow::issued_ms},
    Field{"deadline_ms", &TokenRow::deadline_ms},
    Field{"online", &TokenRow::online},
    Field{"param", &TokenRow::param},
    Field{"instance", &TokenRow::instance},
};

// The addresses of a session. Argument-dependent lookup finds these overloads from row_fields.h.
void PackValue(const std::vector<std::string>& texts, Packer* packer) {
  packer->pack_array(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) PackString(text, packer);
}
// The server bounds the list when it makes it, the reader only by the bytes of the answer.
bool ReadValue(std::string_view key, FieldReader* fields,
               std::optional<std::vector<std::string>>* texts) {
  if (fields->TakeMissing()) return true;
  texts->emplace();
  return fields->ForEachElement(key,
                                [&] { return fields->Required(key, &(*texts)->emplace_back()); });
}

template <>
inline constexpr auto kFieldsOf<SessionRow> = std::tuple{
    Field{"session", &SessionRow::session},
    Field{"namespace", &SessionRow::name_space},
    Field{"client_id", &SessionRow::client_id},
    Field{"kind", &SessionRow::kind},
    Field{"online", &SessionRow::online},
    Field{"connections", &SessionRow::connections},
    Field{"tokens", &SessionRow::tokens},
    Field{"now_calls", &SessionRow::now_calls},
    Field{"opened_ms", &SessionRow::opened_ms},
    Field{"offline_since_ms", &SessionRow::offline_since_ms},
    Field{"waiters", &SessionRow::waiters},
    Field{"hosts", &SessionRow::hosts},
    Field{"instance", &SessionRow::instance},
    Field{"instances", &SessionRow::instances},
    Field{"addresses", &SessionRow::addresses},
    Field{"last_message_ms", &SessionRow::last_message_ms},
};

template <>
inline constexpr auto kFieldsOf<HistoryRow> = std::tuple{
    Field{"sequence", &HistoryRow::sequence},   Field{"ended_ms", &HistoryRow::ended_ms},
    Field{"reason", &HistoryRow::reason},       Field{"token_id", &HistoryRow::token_id},
    Field{"flow_id", &HistoryRow::flow_id},     Field{"namespace", &HistoryRow::name_space},
    Field{"client_id", &HistoryRow::client_id}, Field{"session", &HistoryRow::session},
    Field{"count", &HistoryRow::count},         Field{"fence", &HistoryRow::fence},
    Field{"issued_ms", &HistoryRow::issued_ms}, Field{"held_ms", &HistoryRow::held_ms},
    Field{"note", &HistoryRow::note},           Field{"param", &HistoryRow::param},
    Field{"instance", &HistoryRow::instance},   Field{"outcome", &HistoryRow::outcome},
};

template <>
inline constexpr auto kFieldsOf<ParamRow> = std::tuple{
    Field{"param", &ParamRow::param},
    Field{"now_calls", &ParamRow::now_calls},
    Field{"tokens", &ParamRow::tokens},
    Field{"level", &ParamRow::level},
    Field{"waiters", &ParamRow::waiters},
    Field{"passed", &ParamRow::passed},
    Field{"blocked", &ParamRow::blocked},
    Field{"minute_passed", &ParamRow::minute_passed},
    Field{"minute_blocked", &ParamRow::minute_blocked},
};

template <>
inline constexpr auto kFieldsOf<WaiterRow> = std::tuple{
    Field{"flow_id", &WaiterRow::flow_id},
    Field{"namespace", &WaiterRow::name_space},
    Field{"client_id", &WaiterRow::client_id},
    Field{"count", &WaiterRow::count},
    Field{"prioritized", &WaiterRow::prioritized},
    Field{"place", &WaiterRow::place},
    Field{"since_ms", &WaiterRow::since_ms},
    Field{"deadline_ms", &WaiterRow::deadline_ms},
    Field{"param", &WaiterRow::param},
    Field{"instance", &WaiterRow::instance},
};

// Rows without pages: their handlers bound the number of rows.
template <typename Row>
void EncodeAllRows(uint32_t msgid, const std::vector<Row>& rows, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  packer.pack_array(1);
  packer.pack_array(static_cast<uint32_t>(rows.size()));
  for (const Row& row : rows) PackRow(row, &packer);
}

void EncodeTokenPage(uint32_t msgid, const std::vector<TokenRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out) {
  EncodeRows(msgid, rows, next_cursor, out);
}

void EncodeSessionPage(uint32_t msgid, const std::vector<SessionRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out) {
  EncodeRows(msgid, rows, next_cursor, out);
}

void EncodeHistoryPage(uint32_t msgid, const std::vector<HistoryRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out) {
  EncodeRows(msgid, rows, next_cursor, out);
}

void EncodeParamRows(uint32_t msgid, const std::vector<ParamRow>& rows, OutputBuffer* out) {
  EncodeAllRows(msgid, rows, out);
}

void EncodeWaiterRows(uint32_t msgid, const std::vector<WaiterRow>& rows, OutputBuffer* out) {
  EncodeAllRows(msgid, rows, out);
}

Result<Page<TokenRow>> DecodeTokenPage(std::string_view result) {
  return DecodeRows<TokenRow>("tokens answer", result);
}

Result<Page<SessionRow>> DecodeSessionPage(std::string_view result) {
  return DecodeRows<SessionRow>("sessions answer", result);
}

Result<Page<HistoryRow>> DecodeHistoryPage(std::string_view result) {
  return DecodeRows<HistoryRow>("history answer", result);
}

Result<std::vector<ParamRow>> DecodeParamRows(std::string_view result) {
  // [rows] is a page without a cursor, which DecodeRows takes for the last one.
  Result<Page<ParamRow>> page = DecodeRows<ParamRow>("params answer", result);
  if (!page.ok()) return page.status();
  return std::move(page->rows);
}

Result<std::vector<WaiterRow>> DecodeWaiterRows(std::string_view result) {
  Result<Page<WaiterRow>> page = DecodeRows<WaiterRow>("waiters answer", result);
  if (!page.ok()) return page.status();
  return std::move(page->rows);
}

}  // namespace nowcalls::wire
