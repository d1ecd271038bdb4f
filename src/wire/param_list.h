// ParamList: the values of a parameter as they come in one request, in memory that is used again.
//
// Thread: one at a time. MessagePack has fewer types than Param:
//
//   integer   an int if 32 bits hold it, else a long
//   float     a float or a double, by its width
//   bool      a boolean
//   str       a string
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

// Room for a number as Param has it.
using ParamNumber = std::array<char, 8>;

// Takes the next value as a parameter. `out` points into the bytes read, or into `room`. An error
// for other kinds, integers beyond i64, and strings longer than kParamBytesMax.
bool ReadParam(std::string_view name, FieldReader* fields, ParamNumber* room, Param* out);
// Bytes and shorts become integers.
void PackParam(const Param& value, Packer* packer);

// Of rows (wire/row_fields.h). A value that a client cannot tell from another one comes back as the
// more usual: an integer as in ReadParam.
void PackValue(const ParamValue& value, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, ParamValue* value);
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<ParamValue>* value);

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): numbers_ has values up to size_.
class ParamList {
 public:
  void Clear() { size_ = 0; }
  // Appends the next value. At most kElementsMax.
  bool Read(std::string_view name, FieldReader* fields);
  // They point into the bytes read and into this list.
  std::span<const Param> values() const { return {values_.data(), size_}; }

 private:
  size_t size_ = 0;
  std::array<Param, kElementsMax> values_;
  std::array<ParamNumber, kElementsMax> numbers_;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_PARAM_LIST_H_
