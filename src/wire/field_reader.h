// FieldReader: takes named values out of parameters and results; errors name the value.
//
// Thread: any; a reader lives for one decode. A read that fails writes the error and returns false.
#ifndef NOWCALLS_WIRE_FIELD_READER_H_
#define NOWCALLS_WIRE_FIELD_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/messages.h"
#include "wire/reader.h"

namespace nowcalls::wire {

class FieldReader {
 public:
  // Reads one value, `bytes`. `subject` begins each error ("acquire: count is missing"). Longer
  // strings are errors.
  FieldReader(std::string_view subject, std::string_view bytes, size_t string_bytes_max,
              RequestError* error)
      : subject_(subject), reader_(bytes), string_bytes_max_(string_bytes_max), error_(error) {}
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;

  // The next reads take the array's elements, `elements_max` at most.
  bool OpenArray(uint32_t elements_max);
  bool OpenArray();
  // After the last read: skips elements left. False: bytes follow the value.
  bool Close();

  bool TakeMissing() {  // True: took a nil, or there is no next value.
    if (due_ == 0) return true;
    if (!reader_.TakeNil()) return false;
    --due_;
    return true;
  }

  // T is int64_t, uint64_t, uint32_t, bool, std::string_view or std::string.
  template <typename T>
  bool Required(std::string_view name, T* value) {
    if (TakeMissing()) return Fail(name, "is missing");
    return Read(name, value);
  }
  // Takes either; the other one stays.
  bool RequiredIntOrStr(std::string_view name, int64_t* number, std::string_view* text) {
    if (TakeMissing()) return Fail(name, "is missing");
    const Reader::Outcome outcome = reader_.ReadInt(number);
    if (outcome != Reader::Outcome::kOk) return ReadStrInstead(outcome, name, text);
    --due_;
    return true;
  }
  // Leaves *value alone if it is missing.
  template <typename T>
  bool Optional(std::string_view name, T* value) {
    return TakeMissing() || Read(name, value);
  }
  template <typename T>
  bool Optional(std::string_view name, std::optional<T>* value) {
    if (TakeMissing()) return true;
    T present{};
    if (!Read(name, &present)) return false;
    *value = std::move(present);
    return true;
  }

  // A map: calls read_value(key), which takes exactly one value, for each pair. Of equal keys the
  // last counts.
  template <typename ReadValue>
  bool ForEachKey(std::string_view name, ReadValue&& read_value) {
    uint32_t pairs = 0;
    if (!OpenMap(name, &pairs)) return false;
    const Level outer = Enter(name);
    for (uint32_t i = 0; i < pairs; ++i) {
      std::string_view key;
      if (!ReadKey(&key)) return false;
      due_ = 1;
      if (!read_value(key)) return false;
      NOWCALLS_CHECK(due_ == 0);
    }
    Leave(outer);
    return true;
  }

  // An array: likewise read_element() for each.
  template <typename ReadElement>
  bool ForEachElement(std::string_view name, ReadElement&& read_element) {
    uint32_t elements = 0;
    if (!OpenList(name, &elements)) return false;
    const Level outer = Enter(name);
    for (uint32_t i = 0; i < elements; ++i) {
      due_ = 1;
      if (!read_element()) return false;
      NOWCALLS_CHECK(due_ == 0);
    }
    Leave(outer);
    return true;
  }

  // An array of at most `elements_max`: read_fields() reads as after OpenArray; the rest is
  // skipped.
  template <typename ReadFields>
  bool NestedArray(std::string_view name, uint32_t elements_max, ReadFields&& read_fields) {
    uint32_t elements = 0;
    if (!OpenList(name, &elements)) return false;
    if (elements > elements_max) return FailTooLong(name, elements_max, elements);
    const Level outer = Enter(name);
    due_ = elements;
    if (!read_fields()) return false;
    while (due_ > 0) {
      if (!Skip("it")) return false;
    }
    Leave(outer);
    return true;
  }

  Kind Peek() const { return due_ == 0 ? Kind::kEnd : reader_.Peek(); }
  bool Raw(std::string_view name, std::string_view* bytes);  // Any value whole, as its bytes.
  bool Skip(std::string_view name);

  // Write the error "SUBJECT: NAME WHAT" and return false.
  bool Fail(std::string_view name, std::string_view what) {
    return Fail(ErrorCode::kBadParams, name, what);
  }
  bool Fail(ErrorCode code, std::string_view name, std::string_view what);
  bool FailUnknown(std::string_view key);

 private:
  struct Level {
    std::string_view scope;
    uint32_t due;
  };

  bool Read(std::string_view name, int64_t* value) {
    const Reader::Outcome outcome = reader_.ReadInt(value);
    --due_;
    return outcome == Reader::Outcome::kOk ||
           ExplainInteger(outcome, name, "an integer", "a signed");
  }
  bool Read(std::string_view name, uint64_t* value) {
    const Reader::Outcome outcome = reader_.ReadUint(value);
    --due_;
    return outcome == Reader::Outcome::kOk ||
           ExplainInteger(outcome, name, "an integer", "an unsigned");
  }
  bool Read(std::string_view name, uint32_t* value);
  bool Read(std::string_view name, bool* value);
  bool Read(std::string_view name, std::string_view* value);
  bool Read(std::string_view name, std::string* value);
  bool OpenMap(std::string_view name, uint32_t* pairs);
  bool OpenList(std::string_view name, uint32_t* elements);
  bool ReadKey(std::string_view* key);
  bool ReadStrInstead(Reader::Outcome of_int, std::string_view name, std::string_view* text);
  bool FailTooLong(std::string_view name, uint32_t elements_max, uint32_t elements);
  bool Explain(Reader::Outcome outcome, std::string_view name, std::string_view wanted,
               std::string_view range);
  bool ExplainInteger(Reader::Outcome outcome, std::string_view name, std::string_view wanted,
                      std::string_view which);
  Level Enter(std::string_view name) {
    const Level outer{scope_, due_};
    scope_ = name;
    return outer;
  }
  void Leave(const Level& outer) {
    scope_ = outer.scope;
    due_ = outer.due;
  }

  std::string_view subject_;
  std::string_view scope_;  // The map or array that is being read: "options".
  Reader reader_;
  uint32_t due_ = 1;  // Values left in it.
  size_t string_bytes_max_;
  RequestError* error_;
};

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FIELD_READER_H_
