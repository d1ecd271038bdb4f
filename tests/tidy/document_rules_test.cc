// Each rule about documents fires on a bad example and stays silent on a good one that looks alike.
#include "tidy/document_rules.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::tidy {
namespace {

std::string Times(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// A sentence of so many words.
std::string Sentence(int words) { return Times("word ", words - 1) + "last."; }

Findings Sentences(const std::string& text) { return CheckSentences({"a.md", text}); }

Findings LinksIn(const std::string& text) {
  const Document other = {"src/b.md", "# One\n\n## `Two` & three, 4\n\n## One\n"};
  return CheckLinks({{"src/a.md", text}, other}, {"src", "src/a.md", "src/b.md", "data", "data/x"});
}

TEST_CASE("a long line of a document is found, counted in characters, but not in a table") {
  const auto check = [](const std::string& text) { return CheckDocumentLines({"a.md", text}); };
  CHECK(check(std::string(120, 'x') + "\n").empty());
  CHECK(check(Times("\u00e9", 120) + "\n").empty());
  CHECK(check("| " + std::string(200, 'x') + " |\n").empty());
  CHECK(check("\n" + std::string(121, 'x') + "\n") ==
        Findings{"a.md:2: break the line at column 120"});
  CHECK(check("```\n" + std::string(121, 'x') + "\n```\n").size() == 1);
}

TEST_CASE("a document that outgrows its reader is found") {
  const auto lines = [](const std::string& path, int count) {
    return CheckDocumentSize({path, Times("a\n", count)});
  };
  CHECK(lines("README.md", 150).empty());
  CHECK(lines("README.md", 151) == Findings{"README.md:151: shorten the document to 150 lines"});
  CHECK(lines("src/README.md", 250).empty());
  CHECK(lines("src/README.md", 251).size() == 1);
  CHECK(lines("tests/README.md", 150).empty());
  CHECK(lines("tests/README.md", 151).size() == 1);
  CHECK(lines("tools/manual/rules.md", 249).empty());
  CHECK(lines("tools/manual/rules.md", 250).size() == 1);
  CHECK(lines("src/core/README.md", 400).empty());
  CHECK(lines("src/core/README.md", 401).size() == 1);
  CHECK(lines("src/wire/PROTOCOL.md", 1000).empty());
  CHECK(CheckDocumentSize({"README.md", Times("a ", 1500)}).empty());
  CHECK(CheckDocumentSize({"README.md", Times("a ", 1501)}) ==
        Findings{"README.md:1: shorten the document to 1500 words; it has 1501"});
}

TEST_CASE("a long sentence is found, on the line where it begins") {
  CHECK(Sentences(Sentence(40) + " " + Sentence(40) + "\n").empty());
  CHECK(Sentences("\nShort. " + Sentence(41) + "\n") ==
        Findings{"a.md:2: split the sentence; it has 41 words, not at most 40"});
  CHECK(Sentences("Short.\n" + Sentence(41) + "\n").front().starts_with("a.md:2:"));
  CHECK(Sentences(Times("word\n", 41)).size() == 1);
  CHECK(Sentences(Times("v1.2 ", 41) + "\n").size() == 1);
}

TEST_CASE("sentences end at a colon, a question mark, and with their paragraph or item") {
  const std::string half = Times("word ", 30);
  CHECK(Sentences(half + "end: " + half + "end? " + half + "\n").empty());
  CHECK(Sentences(half + "\n\n" + half + "\n").empty());
  CHECK(Sentences("- " + half + "\n- " + half + "\n").empty());
  CHECK(Sentences("9. " + half + "\n10. " + half + "\n").empty());
  CHECK(Sentences("- " + half + "\n  " + half + "\n").size() == 1);
  CHECK(Sentences(half + "\n    " + half + "\n").size() == 1);
}

TEST_CASE("tables, headings and code are no sentences") {
  const std::string longer = Times("word ", 50);
  CHECK(Sentences("# " + longer + "\n").empty());
  CHECK(Sentences("| " + longer + " |\n").empty());
  CHECK(Sentences("```sh\n" + longer + "\n```\n").empty());
  CHECK(Sentences("Text.\n\n    " + longer + "\n").empty());
  CHECK(Sentences("```\ncode\n```\n" + longer + "\n").size() == 1);
}

TEST_CASE("a long decision of a module is found") {
  const auto check = [](const std::string& path, int lines) {
    return CheckDecisions(
        {path, "# Core\n\n" + Times("a\n", 20) + "\n### 3. Title\n\n" + Times("a\n", lines)});
  };
  CHECK(check("src/core/README.md", 10).empty());
  CHECK(check("src/core/README.md", 11) ==
        Findings{"src/core/README.md:24: shorten the decision to 10 lines; it has 11"});
  CHECK(check("src/README.md", 11).empty());
  CHECK(check("tests/README.md", 11).empty());
}

TEST_CASE("a heading that a formatter has torn is found") {
  const auto check = [](const std::string& text) { return CheckHeadings({"a.md", text}); };
  CHECK(check("# base: all\n\n## `Two`: 2\n\n### 3. Three\n\n## Two\n").empty());
  CHECK(check("# One\n\n```\n#two\n```\n\n    #three\n").empty());
  CHECK(check("#base : all\n") == Findings{"a.md:1: put one blank between # and the title"});
  CHECK(check("#  base\n").size() == 1);
  CHECK(check("#\n").size() == 1);
  CHECK(check("# base : all\n").size() == 1);
  CHECK(check("# base \n").size() == 1);
  CHECK(check("Text.\n\n# One\n") == Findings{"a.md:1: begin the document with a heading"});
  CHECK(check("# One\n\n### Three\n") == Findings{"a.md:3: a level of headings is left out"});
  CHECK(check("# One\n\n# Two\n") == Findings{"a.md:3: a document has one heading with one #"});
  CHECK(check("# One\n\n####### Seven\n").size() == 1);
}

TEST_CASE("a table that a formatter has torn is found") {
  const auto check = [](const std::string& rows) {
    return CheckTables({"a.md", "Text.\n\n" + rows});
  };
  const std::string head = "| a | b |\n|---|---|\n";
  CHECK(check(head + "| 1 | 2 |\n\n" + "| a |\n|:-:|\n| 1 |\n").empty());
  CHECK(check(head + "| `x|y` | x \\| y |\n").empty());
  CHECK(check("```\n| a | b\n```\n\n    | c | d\n").empty());
  CHECK(check(head + "| 1 | 2;\n") == Findings{"a.md:5: end the row of the table with |"});
  CHECK(check(head + "| 1 | 2 | | 3 | 4 |\n") ==
        Findings{"a.md:5: the row has 5 cells, and its table 2"});
  CHECK(check(head + "| 1 |\n").size() == 1);
  CHECK(check("| 1 | 2 |\n| 3 | 4 |\n") ==
        Findings{"a.md:3: a table needs a head and |---| below it"});
}

TEST_CASE("promises and lists of who may include a room are found") {
  const auto check = [](const std::string& path, const std::string& text) {
    return CheckPhrases({path, "# Core\n\n" + text});
  };
  CHECK(check("src/core/README.md", "Frames have come. Whoever enters may stay.\n").empty());
  CHECK(check("tests/README.md", "Frames will come.\n").empty());
  CHECK(check("src/core/README.md", "Text.\nFrames will\ncome.\n") ==
        Findings{"src/core/README.md:4: say what there is, not what will come"});
  CHECK(check("src/core/README.md", "**Who may enter**: engine.\n").size() == 1);
  CHECK(check("src/core/README.md", "Text. **What\nit includes**: base.\n").size() == 1);
}

TEST_CASE("a class that a room's table names and the room does not have is found") {
  const auto check = [](const std::string& path, const std::string& cell) {
    return CheckClassNames({path, "# Core\n\n| part | for |\n|---|---|\n| " + cell + " | `Z` |\n"},
                           {ParseSource("src/core/a.h", "class Sweep {};  // Comment.\n"),
                            ParseSource("src/engine/b.h", "class Engine {};\n"),
                            ParseSource("include/nowcalls/c.h", "class Client {};\n")});
  };
  for (const char* cell :
       {"`Sweep`", "`core::Sweep`", "`Client`, with `Sweep`", "`a.h`", "Swept"}) {
    CHECK_MESSAGE(check("src/core/README.md", cell).empty(), std::string(cell));
  }
  CHECK(check("src/core/README.md", "`Sweep`, `Engine`") ==
        Findings{"src/core/README.md:5: the room has no Engine"});
  CHECK(check("src/core/README.md", "`Swee`").size() == 1);
  CHECK(check("src/core/README.md", "`Comment`").size() == 1);
  CHECK(check("src/README.md", "`Engine`, `Nobody`").empty());
}

TEST_CASE("links to files, folders, headings and the web are followed as far as they can be") {
  for (const char* link :
       {"b.md", "../data", "../data/", "../data/x", "#here", "b.md#one", "b.md#one-1",
        "b.md#two--three-4", "https://a.example/x", "mailto:a@b.example"}) {
    const std::string text = "# Here\n\nSee [the\nother](" + std::string(link) + ").\n";
    CHECK_MESSAGE(LinksIn(text).empty(), std::string(link));
  }
  CHECK(LinksIn("\n[x](c.md)\n") == Findings{"src/a.md:2: the link leads nowhere: c.md"});
  CHECK(LinksIn("[x](b.md#four)\n") ==
        Findings{"src/a.md:1: no heading has this anchor: b.md#four"});
  CHECK(LinksIn("[x](#one)\n").size() == 1);
  CHECK(LinksIn("[x](b.md#one-2)\n").size() == 1);
  CHECK(LinksIn("[x](../../data)\n").size() == 1);
}

TEST_CASE("what looks like a link within code is none") {
  CHECK(LinksIn("`[x](c.md)` and\n\n    [x](c.md)\n\n```\n[x](c.md)\n```\n").empty());
  CHECK(LinksIn("`x` [x](c.md) `x`\n").size() == 1);
}

TEST_CASE("a source that a document names and that is not there is found") {
  const auto check = [](const std::string& path, const std::string& name) {
    return CheckFileNames({path, "\nSee `x` and `" + name + "`.\n"},
                          {"src/core/a.h", "src/core/x/b.h", "include/nowcalls/c.h", "tests/d.md"});
  };
  for (const char* name : {"core/a.h", "src/core/a.h", "a.h", "b.h", "nowcalls/c.h", "x/b.h",
                           "d.md", "x/*.h", "<x>.h", ".h", "a.json"}) {
    CHECK_MESSAGE(check("src/core/README.md", name).empty(), std::string(name));
  }
  CHECK(check("src/core/README.md", "e.h") ==
        Findings{"src/core/README.md:2: there is no file e.h"});
  CHECK(check("src/core/README.md", "store/a.h").size() == 1);
  CHECK(check("src/README.md", "x/b.h").size() == 1);
  CHECK(check("tests/bench/NOTEBOOK.md", "e.h").empty());
  CHECK(CheckFileNames({"a.md", "Text.\n\n    `e.h`\n"}, {}).empty());
}

TEST_CASE("a table of layers that is not the include matrix is found") {
  const auto table = [](const std::string& base, const std::string& core) {
    return "| `base` | x | " + base +
           " |\n| `net` | x | base |\n| `access` | x | base, net |\n| `wire` | x | base |\n| "
           "`ledger` | x | base |\n| `cluster` | x | base, ledger |\n| `etcd` | x | base, cluster "
           "|\n" +
           "| `core` | x | " + core + " |\n| `store` | x | base, ledger |\n" +
           "| `backup` | x | base, ledger, core, store |\n| `client` | x | base, net, wire |\n" +
           "| `engine` | x | base, net, access, wire, ledger, core |\n" +
           "| `web` | x | base, net, access, wire, client |\n" +
           "| `node` | x | base, ledger, core, engine, store, recovery |\n" +
           "| `server` | x | base, net, access, wire, ledger, core, engine, node, store, backup, "
           "recovery, " +
           "cluster, member, client, web |\n" +
           "| `command` | x | base, net, wire, client, library |\n" +
           "| `recovery` | x | base, ledger, core, store |\n" +
           "| `member` | x | base, ledger, cluster, store, recovery, node |\n" +
           "| `embedded` | x | base, net, wire, ledger, core, engine, node, store, recovery, "
           "client, " +
           "library |\n" +
           "| `admin` | x | base, net, access, wire, ledger, core, store, backup, client |\n" +
           "| `library` | x | base, net, wire, client |\n| `bench` | x | base, net, wire, client "
           "|\n";
  };
  CHECK(CheckLayerTable(table("-", "base, ledger")).empty());
  CHECK(CheckLayerTable(table("-", "ledger, base")).empty());
  CHECK(CheckLayerTable(table("-", "base, store")) ==
        Findings{"src/README.md:1: the table of layers says that core may include base, store, but "
                 "it may include base, ledger"});
  CHECK(CheckLayerTable(table("core", "base, ledger")).size() == 1);
  CHECK(CheckLayerTable("| `base` | x | - |\n").size() == 21);
}

}  // namespace
}  // namespace nowcalls::tidy
