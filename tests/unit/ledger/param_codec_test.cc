// The parameter of a token as bytes.
#include "ledger/param_codec.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::ledger {
namespace {

std::string WhyNot(ParamType type, const std::string& bytes) {
  const char* problem = ParamProblem({type, bytes});
  return problem == nullptr ? "" : problem;
}

TEST_CASE("a parameter has the size of its type") {
  constexpr size_t kSizes[] = {4, 8, 1, 8, 4, 2, 1};
  for (size_t type = 0; type < std::size(kSizes); ++type) {
    for (size_t size = 0; size <= 9; ++size) {
      CAPTURE(type);
      CAPTURE(size);
      const bool fits = size == kSizes[type];
      CHECK(WhyNot(static_cast<ParamType>(type), std::string(size, '\0')) ==
            (fits ? "" : "its parameter has not the size of its type"));
    }
  }
  CHECK(WhyNot(ParamType(8), "") == "the type of its parameter is unknown");
  CHECK(WhyNot(ParamType::kBoolean, "\1").empty());
  CHECK(WhyNot(ParamType::kBoolean, "\2") == "its parameter is neither true nor false");
}

TEST_CASE("a text is UTF-8 without zero bytes, and not longer than a frame can hold") {
  CHECK(WhyNot(ParamType::kString, "").empty());
  CHECK(WhyNot(ParamType::kString, "J\xc3\xbcrgen").empty());
  CHECK(WhyNot(ParamType::kString, std::string(kParamBytesMax, 'x')).empty());
  CHECK(WhyNot(ParamType::kString, std::string(kParamBytesMax + 1, 'x')) ==
        "its parameter is too long");
  CHECK(WhyNot(ParamType::kString, "\xc3") == "its parameter is not UTF-8");
  CHECK(WhyNot(ParamType::kString, std::string("a\0b", 3)) == "its parameter holds a zero byte");
}

TEST_CASE("what is appended is read back, and ends where it says") {
  for (const ParamValue& value :
       {ParamValue(ParamType::kString, ""), ParamValue(ParamType::kString, std::string(1024, 'x')),
        ParamValue(ParamType::kLong, std::string(8, '\x80'))}) {
    std::string bytes = "head";
    AppendParam(value.view(), &bytes);
    CHECK(bytes.size() == 4 + ParamCodedBytes(value.view()));
    bytes += "tail";
    ByteReader reader(bytes);
    reader.ReadBytes(4);
    const ParamValue read(ReadParam(&reader));
    CHECK(read == value);
    CHECK(reader.ok());
    CHECK(reader.rest() == "tail");
    const std::string_view all = bytes;
    ByteReader cut(all.substr(4, ParamCodedBytes(value.view()) - 1));
    ReadParam(&cut);
    CHECK_FALSE(cut.Finished());
  }
}

}  // namespace
}  // namespace nowcalls::ledger
