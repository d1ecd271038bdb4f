#include "admin/row_writer.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "unit/admin/string_output.h"

namespace nowcalls::admin {
namespace {

const std::vector<ColumnInfo> kColumns = {
    {"id", "ID", Kind::kNumber},         {"name", "NAME", Kind::kText},
    {"hidden", "", Kind::kNumber},       {"on", "ON", Kind::kFlag},
    {"issued_ms", "AGE", Kind::kAge},    {"until_ms", "LEFT", Kind::kUntil},
    {"hold_ms", "HOLD", Kind::kDuration}};

std::string Write(Format format, const std::vector<std::vector<Cell>>& rows) {
  StringOutput out;
  const auto writer = MakeRowWriter(format, kColumns, 200'000, out.get());
  for (const auto& row : rows) writer->Write(row);
  writer->Finish();
  return out.text();
}

std::vector<Cell> Row(uint64_t id, std::string_view name) {
  return {id, name, int64_t{-3}, true, int64_t{67'000}, int64_t{201'500}, int64_t{4000}};
}

const std::vector<Cell> kAbsent(7);

TEST_CASE("jsonl is one object a line with raw values, null for what is absent") {
  CHECK(Write(Format::kJsonl, {Row(9223372036854775807u, "cart"), kAbsent}) ==
        "{\"id\":9223372036854775807,\"name\":\"cart\",\"hidden\":-3,\"on\":true,"
        "\"issued_ms\":67000,\"until_ms\":201500,\"hold_ms\":4000}\n"
        "{\"id\":null,\"name\":null,\"hidden\":null,\"on\":null,"
        "\"issued_ms\":null,\"until_ms\":null,\"hold_ms\":null}\n");
  CHECK(Write(Format::kJsonl, {}).empty());
}

TEST_CASE("text in jsonl is escaped, and bytes that are not UTF-8 become U+FFFD") {
  std::string json;
  AppendJsonString("a\"b\\c\n\x01", &json);
  CHECK(json == "\"a\\\"b\\\\c\\n\\u0001\"");
  json.clear();
  AppendJsonString("caf\xc3\xa9", &json);
  CHECK(json == "\"caf\xc3\xa9\"");
  json.clear();
  AppendJsonString("\xff!", &json);
  CHECK(json == "\"\xef\xbf\xbd!\"");
}

TEST_CASE("jsonl has no character that drives a terminal or that nobody sees") {
  std::string json;
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  AppendJsonString("a\u202eb\u009b\x7f\u2800", &json);
  CHECK(json == "\"a\\u202eb\\u009b\\u007f\\u2800\"");
}

TEST_CASE("csv on a terminal shows what would drive it; in a file it is the text itself") {
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  const std::string text = "a\x1b]52;c;eA==\x07\u202e";
  for (const bool on_terminal : {false, true}) {
    StringOutput out;
    out.get()->SetOnTerminal(on_terminal);
    const auto writer = MakeRowWriter(Format::kCsv, {{"name", "NAME", Kind::kText}}, 0, out.get());
    writer->Write(std::vector<Cell>{Text(text)});
    writer->Finish();
    CHECK(out.text() ==
          (on_terminal ? "name\na\\x1b]52;c;eA==\\x07\\u{202e}\n" : "name\n" + text + "\n"));
  }
}

TEST_CASE("values of different types look different in a table, and are as they came elsewhere") {
  const auto rows = [](Format format) {
    const ParamValue seven(ParamType::kInt, std::string("\0\0\0\7", 4));
    const ParamValue real(ParamType::kDouble, std::string("\x40\x1c\0\0\0\0\0\0", 8));
    const ParamValue text(ParamType::kString, "7");
    StringOutput out;
    const auto writer = MakeRowWriter(format, {{"param", "PARAM", Kind::kText}}, 0, out.get());
    for (const ParamValue* value : {&seven, &real, &text}) {
      writer->Write(std::vector<Cell>{value->view()});
    }
    writer->Finish();
    return out.text();
  };
  CHECK(rows(Format::kTable) == "PARAM\n7\n7.0\n\"7\"\n");
  CHECK(rows(Format::kJsonl) == "{\"param\":7}\n{\"param\":7}\n{\"param\":\"7\"}\n");
  CHECK(rows(Format::kCsv) == "param\n7\n7\n7\n");
}

TEST_CASE("csv has a header and quotes what holds commas, quotes or line ends") {
  CHECK(Write(Format::kCsv, {Row(1, "a,b"), Row(2, "say \"hi\""), Row(3, "two\nlines"),
                             Row(4, " plain "), kAbsent}) ==
        "id,name,hidden,on,issued_ms,until_ms,hold_ms\n"
        "1,\"a,b\",-3,true,67000,201500,4000\n"
        "2,\"say \"\"hi\"\"\",-3,true,67000,201500,4000\n"
        "3,\"two\nlines\",-3,true,67000,201500,4000\n"
        "4, plain ,-3,true,67000,201500,4000\n"
        ",,,,,,\n");
  CHECK(Write(Format::kCsv, {}) == "id,name,hidden,on,issued_ms,until_ms,hold_ms\n");
}

TEST_CASE("a table aligns numbers right and text left, with durations for people") {
  CHECK(Write(Format::kTable, {Row(1, "cart"), Row(12345, "checkout"), kAbsent}) ==
        "   ID  NAME      ON     AGE  LEFT  HOLD\n"
        "    1  cart      yes  2m13s  1.5s  4.0s\n"
        "12345  checkout  yes  2m13s  1.5s  4.0s\n"
        "    -  -         -        -     -     -\n");
  CHECK(Write(Format::kTable, {}) == "ID  NAME  ON  AGE  LEFT  HOLD\n");
}

TEST_CASE("a table shows a rare column only with numbers above 1, and other formats always") {
  const std::vector<ColumnInfo> columns = {{"id", "ID", Kind::kNumber},
                                           {"hosts", "HOSTS", Kind::kNumber, 0, /*rare=*/true},
                                           {"age", "AGE", Kind::kNumber}};
  const auto write = [&](Format format, uint64_t hosts) {
    StringOutput out;
    const auto writer = MakeRowWriter(format, columns, 0, out.get());
    writer->Write(std::vector<Cell>{uint64_t{5}, uint64_t{1}, uint64_t{7}});
    writer->Write(std::vector<Cell>{uint64_t{6}, hosts, uint64_t{8}});
    writer->Finish();
    return out.text();
  };
  CHECK(write(Format::kTable, 1) == "ID  AGE\n 5    7\n 6    8\n");
  CHECK(write(Format::kTable, 2) == "ID  HOSTS  AGE\n 5      1    7\n 6      2    8\n");
  CHECK(write(Format::kCsv, 1) == "id,hosts,age\n5,1,7\n6,1,8\n");
}

TEST_CASE("an age is never negative, a time left may be") {
  const std::vector<Cell> row = {uint64_t{1},      std::string_view("x"), int64_t{0}, false,
                                 int64_t{300'000}, int64_t{198'000},      int64_t{1}};
  CHECK(Write(Format::kTable, {row}) ==
        "ID  NAME  ON  AGE   LEFT  HOLD\n"
        " 1  x     no  0ms  -2.0s   1ms\n");
}

TEST_CASE("a table counts characters, not bytes") {
  StringOutput out;
  const auto writer = MakeRowWriter(
      Format::kTable, {{"name", "NAME", Kind::kText}, {"n", "N", Kind::kNumber}}, 0, out.get());
  writer->Write(std::vector<Cell>{std::string_view("caf\xc3\xa9s"), uint64_t{1}});
  writer->Write(std::vector<Cell>{std::string_view("tables"), uint64_t{2}});
  writer->Finish();
  CHECK(out.text() == "NAME    N\ncaf\xc3\xa9s   1\ntables  2\n");
}

TEST_CASE("a very long cell moves its own line only") {
  const std::string name(60, 'x');
  const std::string table = Write(Format::kTable, {Row(1, name), Row(2, "short")});
  CHECK(table.find("ID  NAME" + std::string(36, ' ') + "  ON") == 0);
  CHECK(table.find("\n 1  " + name + "  yes") != std::string::npos);
  CHECK(table.find("\n 2  short" + std::string(35, ' ') + "  yes") != std::string::npos);
}

std::string WriteIn(size_t columns, const std::vector<std::vector<Cell>>& rows) {
  const std::vector<ColumnInfo> infos = {{"id", "ID", Kind::kNumber},
                                         {"name", "NAME", Kind::kText},
                                         {"fence", "FENCE", Kind::kNumber, 2},
                                         {"whole", "WHOLE", Kind::kWholeText},
                                         {"on", "ON", Kind::kFlag, 1}};
  StringOutput out;
  out.get()->SetColumns(columns);
  const auto writer = MakeRowWriter(Format::kTable, infos, 0, out.get());
  for (const auto& row : rows) writer->Write(row);
  writer->Finish();
  return out.text();
}

TEST_CASE("a table leaves out columns by rank, then shortens text, until it fits") {
  const std::vector<std::vector<Cell>> rows = {
      {uint64_t{1}, std::string_view("a-client-of-some-length"), uint64_t{123}, "all", true},
      {uint64_t{2}, std::string_view("b"), uint64_t{4}, "that", false}};
  CHECK(WriteIn(50, rows) ==
        "ID  NAME                     FENCE  WHOLE  ON\n"
        " 1  a-client-of-some-length    123  all    yes\n"
        " 2  b                            4  that   no\n");
  CHECK(WriteIn(40, rows) ==
        "ID  NAME                     WHOLE  ON\n"
        " 1  a-client-of-some-length  all    yes\n"
        " 2  b                        that   no\n");
  CHECK(WriteIn(34, rows) ==
        "ID  NAME                     WHOLE\n"
        " 1  a-client-of-some-length  all\n"
        " 2  b                        that\n");
  CHECK(WriteIn(25, rows) ==
        "ID  NAME            WHOLE\n"
        " 1  a-client-of-s\u2026  all\n"
        " 2  b               that\n");
  // No room helps no more.
  CHECK(WriteIn(5, rows) ==
        "ID  NAME      WHOLE\n"
        " 1  a-clien\u2026  all\n"
        " 2  b         that\n");
}

TEST_CASE("a table that fits shows text of any length in full, and in line") {
  const std::string name(60, 'x');
  const std::string_view text = name;
  const std::string table =
      WriteIn(100, {{uint64_t{1}, text, uint64_t{3}, "w", true}, std::vector<Cell>(5)});
  CHECK(table.find("ID  NAME" + std::string(56, ' ') + "  FENCE") == 0);
  CHECK(table.find(" 1  " + name + "      3  w") != std::string::npos);
}

TEST_CASE("digits that JSON readers may round are a string in jsonl, and a number elsewhere") {
  const std::vector<ColumnInfo> infos = {{"token", "TOKEN", Kind::kDigits}};
  const auto write = [&infos](Format format) {
    StringOutput out;
    const auto writer = MakeRowWriter(format, infos, 0, out.get());
    writer->Write(std::vector<Cell>{uint64_t{9223372036854775807}});
    writer->Finish();
    return out.text();
  };
  CHECK(write(Format::kJsonl) == "{\"token\":\"9223372036854775807\"}\n");
  CHECK(write(Format::kCsv) == "token\n9223372036854775807\n");
  CHECK(write(Format::kTable) == "              TOKEN\n9223372036854775807\n");
}

TEST_CASE("no cell of csv is run by a spreadsheet") {
  for (const char* formula : {"=1+1", "+cmd", "-2", "@SUM(A1)", "\tx"}) {
    CHECK(Write(Format::kCsv, {Row(1, formula)}).find("\n1,'" + std::string(formula) + ",") !=
          std::string::npos);
  }
  CHECK(Write(Format::kCsv, {Row(1, "=A1,2")}).find("\n1,\"'=A1,2\",") != std::string::npos);
  // Of a session without a client id.
  for (const char* id : {"@127.0.0.1:77", "@[::1]:77", "a=b"}) {
    CHECK(Write(Format::kCsv, {Row(1, id)}).find("\n1," + std::string(id) + ",") !=
          std::string::npos);
  }
}

TEST_CASE("a table prints rows before it has seen all of them") {
  std::string seen;
  Output out([&seen](std::string_view bytes) {
    seen += bytes;
    return 0;
  });
  const auto writer = MakeRowWriter(Format::kTable, {{"id", "ID", Kind::kNumber}}, 0, &out);
  uint64_t rows = 0;
  for (; rows < 1000; ++rows) writer->Write(std::vector<Cell>{rows});
  out.Flush();
  CHECK(seen.ends_with("\n998\n999\n"));
  // 200 sampled rows have at most three digits; a longer number is not cut.
  writer->Write(std::vector<Cell>{uint64_t{123456}});
  out.Flush();
  CHECK(seen.ends_with("\n123456\n"));
}

TEST_CASE("a detail is one line a column, hidden ones too") {
  CHECK(Write(Format::kDetail, {Row(1, "cart")}) ==
        "id          1\n"
        "name        cart\n"
        "hidden      -3\n"
        "on          yes\n"
        "issued_ago  2m13s\n"
        "until       1.5s\n"
        "hold        4.0s\n");
}

TEST_CASE("an output remembers its first failure and drops the rest") {
  StringOutput out;
  out.get()->Write("kept");
  CHECK(out.text() == "kept");
  out.FailWith(ENOSPC);
  out.get()->Write("lost");
  CHECK(out.get()->status().ok());
  out.get()->Flush();
  CHECK(out.get()->status().message() == "writing the output failed: No space left on device");
  CHECK_FALSE(out.get()->reader_gone());
  out.FailWith(0);
  out.get()->Write("more");
  CHECK(out.text() == "keptlost");
}

TEST_CASE("an output whose reader has gone says so") {
  StringOutput out;
  out.FailWith(EPIPE);
  out.get()->Write("x");
  out.get()->Flush();
  CHECK(out.get()->reader_gone());
}

}  // namespace
}  // namespace nowcalls::admin
