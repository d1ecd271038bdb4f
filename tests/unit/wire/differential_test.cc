// The splitter and the reader against msgpack-c: what both accept, they understand alike.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <msgpack.hpp>
#include <string>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/prng.h"
#include "wire/reader.h"
#include "wire/splitter.h"

namespace nowcalls::wire {
namespace {

using Outcome = MessageSplitter::Outcome;
using SbufferPacker = msgpack::packer<msgpack::sbuffer>;

constexpr int kTrees = 20'000;

void PackText(std::string_view text, SbufferPacker* packer) {
  packer->pack_str(static_cast<uint32_t>(text.size()));
  packer->pack_str_body(text.data(), static_cast<uint32_t>(text.size()));
}

void PackInteger(Prng* prng, SbufferPacker* packer) {
  const uint64_t bits = prng->Next() >> prng->Below(64);
  if (prng->Below(2) == 0) {
    packer->pack_uint64(bits);
  } else {
    packer->pack_int64(-static_cast<int64_t>(bits >> 1));
  }
}

void PackScalar(Prng* prng, SbufferPacker* packer) {
  const std::string run(prng->Below(prng->Below(20) == 0 ? 400 : 40), 'x');
  switch (prng->Below(7)) {
    case 0: packer->pack_nil(); return;
    case 1: prng->Below(2) == 0 ? packer->pack_true() : packer->pack_false(); return;
    case 2: packer->pack_double(static_cast<double>(prng->Between(-1000, 1000)) / 7); return;
    case 3: packer->pack_float(static_cast<float>(prng->Between(-1000, 1000)) / 8); return;
    case 4:
      packer->pack_bin(static_cast<uint32_t>(run.size()));
      packer->pack_bin_body(run.data(), static_cast<uint32_t>(run.size()));
      return;
    case 5: PackText(run, packer); return;
    default: PackInteger(prng, packer);
  }
}

// `levels` more arrays and maps may be nested here.
void PackTree(int levels, Prng* prng, SbufferPacker* packer) {
  const uint64_t kind = prng->Below(levels > 0 ? 3 : 1);
  if (kind == 0) return PackScalar(prng, packer);
  const bool many = levels == 1 && prng->Below(200) == 0;
  const auto size = static_cast<uint32_t>(many ? prng->Between(1020, 1028) : prng->Between(0, 5));
  if (kind == 1) {
    packer->pack_array(size);
  } else {
    packer->pack_map(size);
  }
  for (uint32_t i = 0; i < size; ++i) {
    if (kind == 2) PackText("k" + std::to_string(i), packer);
    PackTree(levels - 1, prng, packer);
  }
}

// [0, msgid, "m", [tree]]
std::string RandomMessage(Prng* prng) {
  msgpack::sbuffer out;
  SbufferPacker packer(out);
  packer.pack_array(4);
  packer.pack_int(0);
  packer.pack_uint32(static_cast<uint32_t>(prng->Next()));
  PackText("m", &packer);
  packer.pack_array(1);
  PackTree(static_cast<int>(prng->Between(0, 7)), prng, &packer);
  return {out.data(), out.size()};
}

void Describe(const msgpack::object& value, std::string* out);

void DescribeAll(const msgpack::object* values, uint32_t size, std::string* out) {
  for (uint32_t i = 0; i < size; ++i) Describe(values[i], out);
}

// A text that tells two values apart, from msgpack-c's tree.
void Describe(const msgpack::object& value, std::string* out) {
  switch (value.type) {
    case msgpack::type::NIL: *out += "nil "; return;
    case msgpack::type::BOOLEAN: *out += value.via.boolean ? "true " : "false "; return;
    case msgpack::type::POSITIVE_INTEGER: *out += std::to_string(value.via.u64) + " "; return;
    case msgpack::type::NEGATIVE_INTEGER: *out += std::to_string(value.via.i64) + " "; return;
    case msgpack::type::FLOAT32:
    case msgpack::type::FLOAT64:
      *out += "float " + std::to_string(std::bit_cast<uint64_t>(value.via.f64)) + " ";
      return;
    case msgpack::type::STR:
      *out += "str " + std::string(value.via.str.ptr, value.via.str.size) + " ";
      return;
    case msgpack::type::BIN:
      *out += "bin " + std::string(value.via.bin.ptr, value.via.bin.size) + " ";
      return;
    case msgpack::type::ARRAY:
      *out += "array " + std::to_string(value.via.array.size) + " ";
      return DescribeAll(value.via.array.ptr, value.via.array.size, out);
    case msgpack::type::MAP:
      *out += "map " + std::to_string(value.via.map.size) + " ";
      for (uint32_t i = 0; i < value.via.map.size; ++i) {
        Describe(value.via.map.ptr[i].key, out);
        Describe(value.via.map.ptr[i].val, out);
      }
      return;
    case msgpack::type::EXT: *out += "ext ";
  }
}

std::string DescribeInteger(Reader* reader) {
  int64_t value = 0;
  if (reader->ReadInt(&value) == Reader::Outcome::kOk) return std::to_string(value);
  uint64_t big = 0;
  CHECK(reader->ReadUint(&big) == Reader::Outcome::kOk);
  return std::to_string(big);
}

std::string DescribeFloat(Reader* reader) {
  std::string_view raw;
  REQUIRE(reader->Skip(&raw) == Reader::Outcome::kOk);
  const char* const bytes = raw.data() + 1;
  const double value =
      raw.size() == 5 ? static_cast<double>(std::bit_cast<float>(LoadBigEndian<uint32_t>(bytes)))
                      : std::bit_cast<double>(LoadBigEndian<uint64_t>(bytes));
  return "float " + std::to_string(std::bit_cast<uint64_t>(value));
}

std::string DescribeBin(Reader* reader) {
  std::string_view raw;
  REQUIRE(reader->Skip(&raw) == Reader::Outcome::kOk);
  const auto type = static_cast<uint8_t>(raw[0]);
  const size_t head_bytes = type == 0xc4 ? 2 : type == 0xc5 ? 3 : 5;
  return "bin " + std::string(raw.substr(head_bytes));
}

// The same text, from the reader. Returns how many values follow that belong to this one.
uint64_t DescribeOne(Reader* reader, std::string* out) {
  uint32_t size = 0;
  bool flag = false;
  std::string_view text;
  switch (reader->Peek()) {
    case Kind::kNil:
      CHECK(reader->TakeNil());
      *out += "nil ";
      return 0;
    case Kind::kBool:
      CHECK(reader->ReadBool(&flag) == Reader::Outcome::kOk);
      *out += flag ? "true " : "false ";
      return 0;
    case Kind::kInt: *out += DescribeInteger(reader) + " "; return 0;
    case Kind::kFloat: *out += DescribeFloat(reader) + " "; return 0;
    case Kind::kBin: *out += DescribeBin(reader) + " "; return 0;
    case Kind::kStr:
      CHECK(reader->ReadString(&text) == Reader::Outcome::kOk);
      *out += "str " + std::string(text) + " ";
      return 0;
    case Kind::kArray:
      CHECK(reader->ReadArray(&size) == Reader::Outcome::kOk);
      *out += "array " + std::to_string(size) + " ";
      return size;
    case Kind::kMap:
      CHECK(reader->ReadMap(&size) == Reader::Outcome::kOk);
      *out += "map " + std::to_string(size) + " ";
      return uint64_t{2} * size;
    default: FAIL("a kind that was not packed"); return 0;
  }
}

std::string DescribeWithReader(std::string_view bytes) {
  Reader reader(bytes);
  std::string out;
  for (uint64_t due = 1; due > 0; --due) due += DescribeOne(&reader, &out);
  CHECK(reader.AtEnd());
  return out;
}

// Whether the limits on nesting and elements hold, told from msgpack-c's tree.
bool WithinLimits(const msgpack::object& value, int level) {
  if (value.type == msgpack::type::ARRAY) {
    const msgpack::object_array& array = value.via.array;
    return level <= kNestingMax && array.size <= kElementsMax &&
           std::all_of(array.ptr, array.ptr + array.size, [level](const msgpack::object& element) {
             return WithinLimits(element, level + 1);
           });
  }
  if (value.type != msgpack::type::MAP) return true;
  const msgpack::object_map& map = value.via.map;
  return level <= kNestingMax && map.size <= kElementsMax &&
         std::all_of(map.ptr, map.ptr + map.size, [level](const msgpack::object_kv& pair) {
           return WithinLimits(pair.val, level + 1);
         });
}

// Feeds `stream` in random pieces until the first message ends or is refused.
Outcome FeedInPieces(std::string_view stream, Prng* prng, size_t* size) {
  MessageSplitter splitter;
  for (size_t arrived = 0;;) {
    const Outcome outcome = splitter.Next(stream.substr(0, arrived), size);
    if (outcome != Outcome::kIncomplete || arrived == stream.size()) return outcome;
    arrived = std::min(stream.size(), arrived + 1 + prng->Below(50));
  }
}

TEST_CASE("random trees are split and read as msgpack-c reads them") {
  Prng prng(20'240'501);
  int accepted = 0;
  for (int i = 0; i < kTrees; ++i) {
    CAPTURE(i);
    const std::string message = RandomMessage(&prng);
    const msgpack::object_handle tree = msgpack::unpack(message.data(), message.size());
    size_t size = 0;
    const Outcome outcome = FeedInPieces(message + "\x93tail", &prng, &size);
    const bool allowed = WithinLimits(tree.get(), 1) && message.size() <= kMessageBytesMax;
    REQUIRE(outcome == (allowed ? Outcome::kMessage : Outcome::kInvalid));
    if (!allowed) continue;
    ++accepted;
    REQUIRE(size == message.size());
    std::string expected;
    Describe(tree.get(), &expected);
    REQUIRE(DescribeWithReader(message) == expected);
  }
  // Both sides of the limits were visited.
  CHECK(accepted > kTrees / 2);
  CHECK(accepted < kTrees);
}

}  // namespace
}  // namespace nowcalls::wire
