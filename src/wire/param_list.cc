#include "wire/param_list.h"

#include <string>

#include "base/bytes.h"
#include "base/utf8.h"
#include "wire/format.h"

namespace nowcalls::wire {
namespace {

template <typename T>
void SetNumber(ParamType type, T number, ParamNumber* room, Param* out) {
  StoreBigEndian(room->data(), number);
  *out = {type, {room->data(), sizeof(T)}};
}

// The type is part of the value, since rules' items are typed. MessagePack has one kind of integer:
// 32 bits decide between int and long, as in the parser of rules.
bool ReadInteger(std::string_view name, FieldReader* fields, ParamNumber* room, Param* out) {
  int64_t value = 0;
  if (!fields->Required(name, &value)) return false;
  if (value >= INT32_MIN && value <= INT32_MAX) {
    SetNumber(ParamType::kInt, static_cast<int32_t>(value), room, out);
  } else {
    SetNumber(ParamType::kLong, value, room, out);
  }
  return true;
}

bool ReadText(std::string_view name, FieldReader* fields, Param* out) {
  out->type = ParamType::kString;
  if (!fields->Required(name, &out->bytes)) return false;
  if (out->bytes.size() > kParamBytesMax) {
    return fields->Fail(name, "of " + std::to_string(out->bytes.size()) + " bytes exceeds " +
                                  std::to_string(kParamBytesMax));
  }
  return IsUtf8(out->bytes) || fields->Fail(name, "must be UTF-8");
}

// Packs the bytes as they came: msgpack-c's pack_double makes an integer of a whole number, which
// is another value.
void PackReal(uint8_t format, std::string_view bytes, Packer* packer) {
  const char head = static_cast<char>(format);
  packer->pack_str_body(&head, 1);
  packer->pack_str_body(bytes.data(), static_cast<uint32_t>(bytes.size()));
}

}  // namespace

bool ReadParam(std::string_view name, FieldReader* fields, ParamNumber* room, Param* out) {
  switch (fields->Peek()) {
    case Kind::kInt: return ReadInteger(name, fields, room, out);
    case Kind::kStr: return ReadText(name, fields, out);
    case Kind::kFloat: {
      // Big-endian on the wire as in Param: a view behind the type byte is the value.
      std::string_view bytes;
      if (!fields->Raw(name, &bytes)) return false;
      const bool narrow = static_cast<uint8_t>(bytes[0]) == kFloat32;
      *out = {narrow ? ParamType::kFloat : ParamType::kDouble, bytes.substr(1)};
      return true;
    }
    case Kind::kBool: {
      bool value = false;
      if (!fields->Required(name, &value)) return false;
      SetNumber(ParamType::kBoolean, static_cast<uint8_t>(value ? 1 : 0), room, out);
      return true;
    }
    default:
      return fields->Fail(
          name, "must be an int, float, bool or str, got " + std::string(KindName(fields->Peek())));
  }
}

void PackParam(const Param& value, Packer* packer) {
  const char* const bytes = value.bytes.data();
  switch (value.type) {
    case ParamType::kInt: packer->pack_int64(LoadBigEndian<int32_t>(bytes)); return;
    case ParamType::kLong: packer->pack_int64(LoadBigEndian<int64_t>(bytes)); return;
    case ParamType::kByte: packer->pack_int64(LoadBigEndian<int8_t>(bytes)); return;
    case ParamType::kShort: packer->pack_int64(LoadBigEndian<int16_t>(bytes)); return;
    case ParamType::kDouble: PackReal(kFloat64, value.bytes, packer); return;
    case ParamType::kFloat: PackReal(kFloat32, value.bytes, packer); return;
    case ParamType::kBoolean: *bytes != 0 ? packer->pack_true() : packer->pack_false(); return;
    case ParamType::kString: PackString(value.bytes, packer); return;
  }
}

void PackValue(const ParamValue& value, Packer* packer) { PackParam(value.view(), packer); }

// A row outlives the bytes it was read from, so ParamValue copies the value.
bool ReadValue(std::string_view key, FieldReader* fields, ParamValue* value) {
  ParamNumber room;
  Param param;
  if (!ReadParam(key, fields, &room, &param)) return false;
  *value = ParamValue(param);
  return true;
}

bool ReadValue(std::string_view key, FieldReader* fields, std::optional<ParamValue>* value) {
  return fields->TakeMissing() || ReadValue(key, fields, &value->emplace());
}

bool ParamList::Read(std::string_view name, FieldReader* fields) {
  // Only for callers other than the server, whose splitter bounds arrays by kElementsMax.
  if (size_ == values_.size()) return fields->Fail(name, "is one too many");
  if (!ReadParam(name, fields, &numbers_[size_], &values_[size_])) return false;
  ++size_;
  return true;
}

}  // namespace nowcalls::wire
