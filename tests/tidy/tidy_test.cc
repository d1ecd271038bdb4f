// The rules of the code base, enforced on the real tree. That each rule fires is in rules_test.cc.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "test_paths.h"
#include "tidy/class_rules.h"
#include "tidy/code_rules.h"
#include "tidy/document_rules.h"
#include "tidy/include_rules.h"
#include "tidy/source_file.h"
#include "tidy/tree_rules.h"

namespace nowcalls::tidy {
namespace {

const std::vector<SourceFile>& Tree() {
  static const std::vector<SourceFile> tree = LoadTree(NOWCALLS_SOURCE_DIR);
  return tree;
}

void Report(const Findings& findings) {
  for (const auto& finding : findings) FAIL_CHECK(finding);
}

TEST_CASE("the tree is found, headers and sources of every layer") {
  std::set<std::string> paths;
  for (const auto& file : Tree()) paths.insert(file.path);
  for (const char* path : {"CMakeLists.txt", "tools/dev", "src/base/check.h",
                           "include/nowcalls/status.h", "tests/tidy/tidy_test.cc"}) {
    CHECK_MESSAGE(paths.contains(path), std::string(path));
  }
}

const std::vector<Document>& Documents() {
  static const std::vector<Document> documents = LoadDocuments(NOWCALLS_SOURCE_DIR);
  return documents;
}

TEST_CASE("every file includes only what its layer may include") {
  for (const auto& file : Tree()) {
    if (file.IsCpp()) Report(CheckIncludes(file));
  }
}

TEST_CASE("every module is linked with what it may include") {
  int modules = 0;
  for (const auto& file : Tree()) {
    if (!file.path.starts_with("src/") || !file.path.ends_with("/CMakeLists.txt")) continue;
    if (file.path == "src/CMakeLists.txt") continue;  // Where it is defined.
    Report(CheckDepends(file));
    ++modules;
  }
  CHECK(modules == 22);
}

TEST_CASE("every source file includes its own header first") {
  std::set<std::string> headers;
  for (const auto& file : Tree()) {
    if (file.IsHeader()) headers.insert(file.path.substr(0, file.path.size() - 2));
  }
  for (const auto& file : Tree()) {
    if (!file.IsCpp() || file.IsHeader()) continue;
    Report(CheckOwnHeaderFirst(file, headers.contains(file.path.substr(0, file.path.size() - 3))));
  }
}

TEST_CASE("lines, functions and files are short") {
  for (const auto& file : Tree()) {
    Report(CheckLengths(file));
    Report(CheckFunctionLengths(file));
  }
}

TEST_CASE("classes have few methods") {
  for (const auto& file : Tree()) Report(CheckClassSizes(file));
}

TEST_CASE("headers are guarded by their path and open with a comment") {
  for (const auto& file : Tree()) Report(CheckHeaderShape(file));
}

TEST_CASE("nothing banned is used") {
  for (const auto& file : Tree()) Report(CheckBans(file));
}

TEST_CASE("the documents are found, at the top and below") {
  std::set<std::string> paths;
  for (const auto& document : Documents()) paths.insert(document.path);
  for (const char* path : {"README.md", "src/README.md", "src/core/README.md", "tests/README.md",
                           "src/wire/PROTOCOL.md", "src/ledger/FORMAT.md"}) {
    CHECK_MESSAGE(paths.contains(path), std::string(path));
  }
}

TEST_CASE("lines of documents have at most 120 characters") {
  for (const auto& document : Documents()) Report(CheckDocumentLines(document));
}

TEST_CASE("documents are as short as their reader needs them") {
  for (const auto& document : Documents()) Report(CheckDocumentSize(document));
}

TEST_CASE("no sentence of a document has more than 40 words") {
  for (const auto& document : Documents()) Report(CheckSentences(document));
}

TEST_CASE("no decision of a module takes more than ten lines") {
  for (const auto& document : Documents()) Report(CheckDecisions(document));
}

TEST_CASE("headings and tables of documents are whole") {
  for (const auto& document : Documents()) {
    Report(CheckHeadings(document));
    Report(CheckTables(document));
  }
}

TEST_CASE("documents promise nothing, and leave who includes whom to one table") {
  for (const auto& document : Documents()) Report(CheckPhrases(document));
}

TEST_CASE("classes that a room's README lists are classes of the room") {
  for (const auto& document : Documents()) Report(CheckClassNames(document, Tree()));
}

TEST_CASE("links of documents lead to files and headings that exist") {
  Report(CheckLinks(Documents(), LoadPaths(NOWCALLS_SOURCE_DIR)));
}

TEST_CASE("sources that a document names exist") {
  const auto paths = LoadPaths(NOWCALLS_SOURCE_DIR);
  for (const auto& document : Documents()) Report(CheckFileNames(document, paths));
}

TEST_CASE("the table of layers in src/README.md is the include matrix") {
  for (const auto& document : Documents()) {
    if (document.path == "src/README.md") Report(CheckLayerTable(document.text));
  }
}

TEST_CASE("the top level holds what it should and nothing else") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(NOWCALLS_SOURCE_DIR)) {
    names.push_back(entry.path().filename().string());
  }
  Report(CheckTopLevel(names));
}

TEST_CASE("every test has a name of its own") { Report(CheckTestNames(Tree())); }

}  // namespace
}  // namespace nowcalls::tidy
