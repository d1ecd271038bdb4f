#include "wire/reader.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "unit/wire/pack.h"

namespace nowcalls::wire {
namespace {

using ReadOutcome = Reader::Outcome;

int64_t Int(std::string_view hex) {
  const std::string bytes = Bytes(hex);
  Reader reader(bytes);
  int64_t value = -12345;
  CHECK(reader.ReadInt(&value) == ReadOutcome::kOk);
  CHECK(reader.AtEnd());
  return value;
}

ReadOutcome IntOutcome(std::string_view hex) {
  const std::string bytes = Bytes(hex);
  Reader reader(bytes);
  int64_t value = -12345;
  const ReadOutcome outcome = reader.ReadInt(&value);
  CHECK(value == -12345);
  CHECK(reader.rest() == bytes);
  return outcome;
}

ReadOutcome UintOutcome(std::string_view hex, uint64_t* value) {
  const std::string bytes = Bytes(hex);
  Reader reader(bytes);
  return reader.ReadUint(value);
}

TEST_CASE("an integer is accepted in every encoding it fits") {
  for (const char* five : {"05", "cc05", "cd0005", "ce00000005", "cf0000000000000005", "d005",
                           "d10005", "d200000005", "d30000000000000005"}) {
    CAPTURE(five);
    CHECK(Int(five) == 5);
    uint64_t value = 0;
    CHECK(UintOutcome(five, &value) == ReadOutcome::kOk);
    CHECK(value == 5);
  }
  for (const char* minus_five : {"fb", "d0fb", "d1fffb", "d2fffffffb", "d3fffffffffffffffb"}) {
    CAPTURE(minus_five);
    CHECK(Int(minus_five) == -5);
    uint64_t value = 77;
    CHECK(UintOutcome(minus_five, &value) == ReadOutcome::kOutOfRange);
    CHECK(value == 77);
  }
}

TEST_CASE("integers are read to the ends of their range and not beyond") {
  CHECK(Int("7f") == 127);
  CHECK(Int("e0") == -32);
  CHECK(Int("ccff") == 255);
  CHECK(Int("d080") == -128);
  CHECK(Int("ceffffffff") == 4294967295);
  CHECK(Int("d280000000") == INT32_MIN);
  CHECK(Int("cf7fffffffffffffff") == INT64_MAX);
  CHECK(Int("d38000000000000000") == INT64_MIN);
  CHECK(IntOutcome("cf8000000000000000") == ReadOutcome::kOutOfRange);
  CHECK(IntOutcome("cfffffffffffffffff") == ReadOutcome::kOutOfRange);
  uint64_t value = 0;
  CHECK(UintOutcome("cfffffffffffffffff", &value) == ReadOutcome::kOk);
  CHECK(value == UINT64_MAX);
}

TEST_CASE("a value of another kind is not taken") {
  for (const char* other : {"c0", "c2", "cb3ff0000000000000", "ca3f800000", "a135", "c40135", "90",
                            "80", "c1", "d40000"}) {
    CAPTURE(other);
    CHECK(IntOutcome(other) == ReadOutcome::kWrongKind);
  }
  Reader reader("\x05");
  bool flag = false;
  std::string_view text;
  uint32_t length = 0;
  CHECK(reader.ReadBool(&flag) == ReadOutcome::kWrongKind);
  CHECK(reader.ReadString(&text) == ReadOutcome::kWrongKind);
  CHECK(reader.ReadArray(&length) == ReadOutcome::kWrongKind);
  CHECK(reader.ReadMap(&length) == ReadOutcome::kWrongKind);
  CHECK_FALSE(reader.TakeNil());
  CHECK(reader.Peek() == Kind::kInt);
}

TEST_CASE("only values of its own kind are taken, however much is behind them") {
  for (int type = 0; type < 256; ++type) {
    CAPTURE(type);
    const std::string bytes = static_cast<char>(type) + std::string(1'000, '\0');
    const Kind kind = Reader(bytes).Peek();
    Reader reader(bytes);
    std::string_view text;
    int64_t number = 0;
    uint64_t positive = 0;
    uint32_t length = 0;
    CHECK((reader.ReadString(&text) == ReadOutcome::kWrongKind) == (kind != Kind::kStr));
    CHECK((Reader(bytes).ReadInt(&number) == ReadOutcome::kWrongKind) == (kind != Kind::kInt));
    CHECK((Reader(bytes).ReadUint(&positive) == ReadOutcome::kWrongKind) == (kind != Kind::kInt));
    CHECK((Reader(bytes).ReadArray(&length) == ReadOutcome::kWrongKind) == (kind != Kind::kArray));
    CHECK(Reader(bytes).TakeNil() == (kind == Kind::kNil));
    CHECK(text.size() == (type > 0xa0 && type <= 0xbf ? type - 0xa0 : 0));
  }
}

TEST_CASE("a value that is cut off is not taken") {
  for (const char* cut : {"", "cc", "cd00", "ce000000", "cf00000000000000", "d0", "d3"}) {
    CAPTURE(cut);
    CHECK(IntOutcome(cut) == ReadOutcome::kCutOff);
  }
  for (const char* cut : {"", "a2 61", "d9", "d902 61", "da00", "db000000", "dbffffffff 61"}) {
    CAPTURE(cut);
    const std::string bytes = Bytes(cut);
    Reader reader(bytes);
    std::string_view text = "before";
    CHECK(reader.ReadString(&text) == ReadOutcome::kCutOff);
    CHECK(text == "before");
    CHECK(reader.rest() == bytes);
  }
}

TEST_CASE("strings, bools, nil and heads are read in all their encodings") {
  const std::string bytes =
      Bytes("a161 d90162 da000163 db0000000164 c3c2c0 92 dc0003 dd00000004 81 de0002 df00000003");
  Reader reader(bytes);
  std::string_view text;
  for (const char* expected : {"a", "b", "c", "d"}) {
    REQUIRE(reader.ReadString(&text) == ReadOutcome::kOk);
    CHECK(text == expected);
  }
  bool flag = false;
  CHECK(reader.ReadBool(&flag) == ReadOutcome::kOk);
  CHECK(flag);
  CHECK(reader.ReadBool(&flag) == ReadOutcome::kOk);
  CHECK_FALSE(flag);
  CHECK(reader.TakeNil());
  for (const uint32_t expected : {2, 3, 4}) {
    uint32_t elements = 0;
    CHECK(reader.ReadArray(&elements) == ReadOutcome::kOk);
    CHECK(elements == expected);
  }
  for (const uint32_t expected : {1, 2, 3}) {
    uint32_t pairs = 0;
    CHECK(reader.ReadMap(&pairs) == ReadOutcome::kOk);
    CHECK(pairs == expected);
  }
  CHECK(reader.AtEnd());
}

TEST_CASE("a value is skipped whole, with all that it holds") {
  const std::string inner = PackArray(1, "two", 3.5, Nil(), true, std::vector<char>(3, 'b'),
                                      std::map<std::string, int>{{"k", -70'000}}, 1.5F);
  const std::string bytes = inner + "\x07";
  Reader reader(bytes);
  std::string_view skipped;
  REQUIRE(reader.Skip(&skipped) == ReadOutcome::kOk);
  CHECK(skipped == inner);
  CHECK(reader.rest() == "\x07");
  for (size_t size = 0; size < inner.size(); ++size) {
    const std::string part = inner.substr(0, size);
    Reader cut(part);
    CHECK(cut.Skip(&skipped) == ReadOutcome::kCutOff);
  }
}

TEST_CASE("skipping does not recurse and does not believe in lengths") {
  const std::string deep = std::string(1'000'000, '\x91') + '\xc0';
  std::string_view skipped;
  Reader reader(deep);
  CHECK(reader.Skip(&skipped) == ReadOutcome::kOk);
  CHECK(skipped.size() == deep.size());
  const std::string huge = Bytes("ddffffffff dfffffffff c6ffffffff");
  Reader greedy(huge);
  CHECK(greedy.Skip(&skipped) == ReadOutcome::kCutOff);
  CHECK(Reader("\xc1").Skip(&skipped) == ReadOutcome::kWrongKind);
  CHECK(Reader(Bytes("91d40000")).Skip(&skipped) == ReadOutcome::kWrongKind);
}

TEST_CASE("kinds have the names that error messages use") {
  CHECK(KindName(Reader("").Peek()) == "nothing");
  CHECK(KindName(Reader("\xc0").Peek()) == "nil");
  CHECK(KindName(Reader("\xc3").Peek()) == "bool");
  CHECK(KindName(Reader("\xe0").Peek()) == "int");
  CHECK(KindName(Reader("\xca").Peek()) == "float");
  CHECK(KindName(Reader("\xdb").Peek()) == "str");
  CHECK(KindName(Reader("\xc5").Peek()) == "bin");
  CHECK(KindName(Reader("\xdd").Peek()) == "array");
  CHECK(KindName(Reader("\x8f").Peek()) == "map");
  CHECK(KindName(Reader("\xd8").Peek()) == "ext");
  CHECK(KindName(Reader("\xc1").Peek()) == "byte 0xc1");
}

}  // namespace
}  // namespace nowcalls::wire
