// ParamList: the values of a parameter in one request. Reuses its memory.
//
// Thread: one at a time. MessagePack has fewer types than Param (README, decision 6; PROTOCOL.md,
// request_param).
#ifndef NOWCALLS_WIRE_PARAM_LIST_H_
#define NOWCALLS_WIRE_PARAM_LIST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/limits.h"
#include "nowcalls/param.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {

using ParamNumber = std::array<char, 8>;  // Room for a number of a Param.

// `out` points into the bytes read or into `room`. Errors: other kinds, integers beyond i64,
// strings beyond kParamBytesMax.
bool ReadParam(std::string_view name, FieldReader* fields, ParamNumber* room, Param* out);
// Bytes and shorts become integers.
void PackParam(const Param& value, Packer* packer);

// For rows (row_fields.h). Types that MessagePack lacks come back as in ReadParam.
void PackValue(const ParamValue& value, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, ParamValue* value);
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<ParamValue>* value);

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): numbers_ has values up to size_.
class ParamList {
 public:
  void Clear() { size_ = 0; }
  bool Read(std::string_view name, FieldReader* fields);  // Appends one; at most kElementsMax.
  std::span<const Param> values() const { return {values_.data(), size_}; }  // Into bytes and list.

 private:
  size_t size_ = 0;
  std::array<Param, kElementsMax> values_;
  std::array<ParamNumber, kElementsMax> numbers_;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_PARAM_LIST_H_
