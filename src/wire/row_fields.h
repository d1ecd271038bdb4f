// Rows of listings as maps on the wire: one list of fields for both directions.
//
// Thread: any. A row type names its fields once, in the order sent:
//
//   template <>
//   inline constexpr auto kFieldsOf<TokenRow> = std::tuple{
//       Field{"token_id", &TokenRow::token_id}, Field{"online", &TokenRow::online}};
//
// A map without the first field is an error. Absent std::optional members are left out; of other
// members nil is an error. A member that is a map has its own PackValue and ReadValue.
#ifndef NOWCALLS_WIRE_ROW_FIELDS_H_
#define NOWCALLS_WIRE_ROW_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "nowcalls/status.h"
#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/rows.h"

namespace nowcalls::wire {

template <typename Row, typename Value>
struct Field {
  std::string_view key;
  Value Row::*member;
};
// clang 14 does not deduce the arguments of an aggregate.
template <typename Row, typename Value>
Field(std::string_view, Value Row::*) -> Field<Row, Value>;

// Specialise: a std::tuple of Field.
template <typename Row>
inline constexpr auto kFieldsOf = std::tuple{};

inline void PackValue(const std::string& value, Packer* packer) { PackString(value, packer); }
inline void PackValue(uint64_t value, Packer* packer) { packer->pack_uint64(value); }
inline void PackValue(uint32_t value, Packer* packer) { packer->pack_uint32(value); }
inline void PackValue(int64_t value, Packer* packer) { packer->pack_int64(value); }
inline void PackValue(bool value, Packer* packer) {
  value ? packer->pack_true() : packer->pack_false();
}

template <typename Value>
void PackField(std::string_view key, const Value& value, Packer* packer) {
  PackString(key, packer);
  PackValue(value, packer);
}
template <typename Value>
void PackField(std::string_view key, const std::optional<Value>& value, Packer* packer) {
  if (value) PackField(key, *value, packer);
}

template <typename Value>
uint32_t Pairs(const Value&) {
  return 1;
}
template <typename Value>
uint32_t Pairs(const std::optional<Value>& value) {
  return value ? 1 : 0;
}

template <typename Row>
void PackRow(const Row& row, Packer* packer) {
  std::apply(
      [&](const auto&... field) {
        packer->pack_map((Pairs(row.*field.member) + ...));
        (PackField(field.key, row.*field.member, packer), ...);
      },
      kFieldsOf<Row>);
}

template <typename Row>
void EncodeRows(uint32_t msgid, const std::vector<Row>& rows, uint64_t next_cursor,
                OutputBuffer* out) {
  Packer packer(*out);
  BeginPage(msgid, rows.size(), &packer);
  for (const Row& row : rows) PackRow(row, &packer);
  PackCursor(next_cursor, &packer);
}

template <typename Value>
bool ReadValue(std::string_view key, FieldReader* fields, Value* value) {
  return fields->Required(key, value);
}
template <typename Value>
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<Value>* value) {
  return fields->Optional(key, value);
}

// Skips unknown keys.
template <typename Row>
bool ReadField(std::string_view key, FieldReader* fields, Row* row) {
  bool read = false;
  const auto read_if = [&](const auto& field) {
    if (field.key != key) return false;
    read = ReadValue(key, fields, &(row->*field.member));
    return true;
  };
  const bool known =
      std::apply([&](const auto&... field) { return (read_if(field) || ...); }, kFieldsOf<Row>);
  return known ? read : fields->Skip(key);
}

template <typename Row>
bool ReadRow(FieldReader* fields, Row* row) {
  constexpr std::string_view kName = std::get<0>(kFieldsOf<Row>).key;
  bool named = false;
  const auto read = [&](std::string_view key) {
    named = named || key == kName;
    return ReadField(key, fields, row);
  };
  return fields->ForEachKey("row", read) && (named || fields->Fail(kName, "is missing in a row"));
}

// Of EncodeRows. kCorruption: something else; `subject` begins the message.
template <typename Row>
Result<Page<Row>> DecodeRows(std::string_view subject, std::string_view result) {
  RequestError error;
  FieldReader fields(subject, result, kReplyBytesMax, &error);
  Page<Row> page;
  const auto read_row = [&] {
    page.rows.emplace_back();
    return ReadRow(&fields, &page.rows.back());
  };
  const bool decoded = fields.OpenArray() && fields.ForEachElement("rows", read_row) &&
                       fields.Optional("next_cursor", &page.next_cursor) && fields.Close();
  if (!decoded) return Status::Corruption(error.message);
  return page;
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_ROW_FIELDS_H_
