#include "wire/json.h"

#include <cmath>
#include <map>
#include <msgpack/unpack.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "base/utf8.h"
#include "wire/packing.h"

namespace nowcalls::wire {
namespace {

using Json = nlohmann::ordered_json;

// Of a float that is a whole number, pack_double makes an integer. Binary and discarded values do
// not come from rules.
void PackJson(const Json& json, Packer* packer) {
  switch (json.type()) {
    case Json::value_t::boolean:
      json.get<bool>() ? packer->pack_true() : packer->pack_false();
      return;
    case Json::value_t::number_integer: packer->pack_int64(json.get<int64_t>()); return;
    case Json::value_t::number_unsigned: packer->pack_uint64(json.get<uint64_t>()); return;
    case Json::value_t::number_float: packer->pack_double(json.get<double>()); return;
    case Json::value_t::string: PackString(json.get_ref<const std::string&>(), packer); return;
    case Json::value_t::array:
      packer->pack_array(static_cast<uint32_t>(json.size()));
      for (const Json& element : json) PackJson(element, packer);
      return;
    case Json::value_t::object:
      packer->pack_map(static_cast<uint32_t>(json.size()));
      for (const auto& [key, value] : json.items()) {
        PackString(key, packer);
        PackJson(value, packer);
      }
      return;
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded: packer->pack_nil(); return;
  }
}

Status NotJson(const std::string& why) { return Status::InvalidArgument("cannot be JSON: " + why); }

Status ToJson(const msgpack::object& value, Json* json);

// JSON text is UTF-8: dump() of anything else would throw.
Status TextToJson(const msgpack::object_str& text, Json* json) {
  const std::string_view view(text.ptr, text.size);
  if (!IsUtf8(view)) return NotJson("a str is not UTF-8: " + Quoted(view));
  *json = view;
  return Status::Ok();
}

Status ArrayToJson(const msgpack::object_array& array, Json* json) {
  *json = Json::array();
  for (const msgpack::object* element = array.ptr; element != array.ptr + array.size; ++element) {
    json->emplace_back();
    NOWCALLS_RETURN_IF_ERROR(ToJson(*element, &json->back()));
  }
  return Status::Ok();
}

// Pairs are appended to the object's vector: Json's own look-up walks all keys before each, so a
// large map would cost its square. Of equal keys the last value counts, at the place of the first.
Status MapToJson(const msgpack::object_map& map, Json* json) {
  *json = Json::object();
  auto& pairs = json->get_ref<Json::object_t&>();
  pairs.reserve(map.size);
  std::map<std::string_view, Json*> values;
  for (const msgpack::object_kv* pair = map.ptr; pair != map.ptr + map.size; ++pair) {
    if (pair->key.type != msgpack::type::STR) return NotJson("a map key is not a str");
    const std::string_view key(pair->key.via.str.ptr, pair->key.via.str.size);
    if (!IsUtf8(key)) return NotJson("a str is not UTF-8: " + Quoted(key));
    Json*& value = values[key];
    if (value == nullptr) value = &pairs.emplace_back(std::string(key), Json()).second;
    NOWCALLS_RETURN_IF_ERROR(ToJson(pair->val, value));
  }
  return Status::Ok();
}

// Recursion is bounded by the nesting limit of msgpack-c's parser.
Status ToJson(const msgpack::object& value, Json* json) {
  switch (value.type) {
    case msgpack::type::NIL: *json = nullptr; return Status::Ok();
    case msgpack::type::BOOLEAN: *json = value.via.boolean; return Status::Ok();
    case msgpack::type::POSITIVE_INTEGER: *json = value.via.u64; return Status::Ok();
    case msgpack::type::NEGATIVE_INTEGER: *json = value.via.i64; return Status::Ok();
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      if (!std::isfinite(value.via.f64)) return NotJson("a float is NaN or infinite");
      *json = value.via.f64;
      return Status::Ok();
    case msgpack::type::STR: return TextToJson(value.via.str, json);
    case msgpack::type::ARRAY: return ArrayToJson(value.via.array, json);
    case msgpack::type::MAP: return MapToJson(value.via.map, json);
    case msgpack::type::BIN: return NotJson("a value is bin");
    case msgpack::type::EXT: return NotJson("a value is an extension type");
  }
  return NotJson("a value is of an unknown type");
}

}  // namespace

void EncodeJsonResult(uint32_t msgid, const Json& result, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  PackJson(result, &packer);
}

void EncodeJsonPage(uint32_t msgid, const std::vector<Json>& rows, uint64_t next_cursor,
                    OutputBuffer* out) {
  Packer packer(*out);
  BeginPage(msgid, rows.size(), &packer);
  for (const Json& row : rows) PackJson(row, &packer);
  PackCursor(next_cursor, &packer);
}

void EncodeRulesPage(uint32_t msgid, const std::vector<RuleRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out) {
  std::vector<Json> objects;
  objects.reserve(rows.size());
  // Namespace and kind come first; a rule has neither as a field of its own.
  for (const RuleRow& row : rows) {
    objects.push_back({{"namespace", row.name_space}, {"kind", FlowKindName(row.kind)}});
    objects.back().update(Json::parse(row.json));
  }
  EncodeJsonPage(msgid, objects, next_cursor, out);
}

Result<std::string> JsonTextFromMessagePack(std::string_view value) {
  const Result<Json> json = JsonFromMessagePack(value);
  if (!json.ok()) return json.status();
  return json->dump();
}

// Errors of msgpack-c come as exceptions; here they become a status.
Result<Json> JsonFromMessagePack(std::string_view value) {
  // No length is larger than the value itself, so a claimed one allocates nothing beyond it.
  const msgpack::unpack_limit limit(kElementsMax, kElementsMax, value.size(), value.size(),
                                    value.size(), kNestingMax);
  try {
    size_t offset = 0;
    const msgpack::object_handle handle =
        msgpack::unpack(value.data(), value.size(), offset, nullptr, nullptr, limit);
    // Bytes behind the value would be lost silently.
    if (offset != value.size()) return NotJson("stray bytes follow the value");
    Json json;
    NOWCALLS_RETURN_IF_ERROR(ToJson(handle.get(), &json));
    return json;
  } catch (const msgpack::unpack_error& e) {
    return NotJson(std::string("no whole MessagePack value within the limits: ") + e.what());
  }
}

}  // namespace nowcalls::wire
