#include "wire/output_buffer.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::wire {
namespace {

TEST_CASE("bytes come out as they went in, over many growths") {
  OutputBuffer out;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string piece(static_cast<size_t>(i % 97), static_cast<char>(i));
    out.Append(piece);
    expected += piece;
  }
  CHECK(out.view() == expected);
  CHECK(out.capacity() >= out.size());
}

TEST_CASE("an empty buffer holds no memory and takes empty pieces") {
  OutputBuffer out;
  out.Append("");
  out.Consume(0);
  CHECK(out.empty());
  CHECK(out.capacity() == 0);
  out.Append("abc");
  out.ShrinkToEmpty();
  CHECK(out.capacity() == 0);
  CHECK(out.view().empty());
}

TEST_CASE("clearing keeps the memory") {
  OutputBuffer out;
  out.Append("abc");
  const char* const data = out.data();
  out.Clear();
  CHECK(out.empty());
  out.Append("xyz");
  CHECK(out.data() == data);
}

TEST_CASE("bytes are dropped from the front and from the back") {
  OutputBuffer out;
  out.Append("0123456789");
  out.Consume(3);
  CHECK(out.view() == "3456789");
  out.Truncate(2);
  CHECK(out.view() == "34");
  out.Append("x");
  CHECK(out.view() == "34x");
  out.Consume(3);
  CHECK(out.empty());
}

TEST_CASE("a buffer that was moved from is empty or holds what the other held") {
  OutputBuffer a;
  a.Append("abc");
  OutputBuffer b = std::move(a);
  CHECK(b.view() == "abc");
  OutputBuffer c;
  c.Append("xy");
  c = std::move(b);
  CHECK(c.view() == "abc");
}

}  // namespace
}  // namespace nowcalls::wire
