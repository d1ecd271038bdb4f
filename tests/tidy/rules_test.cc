// Each rule fires on a bad example and stays silent on a good one that looks alike.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tidy/class_rules.h"
#include "tidy/code_rules.h"
#include "tidy/include_rules.h"
#include "tidy/source_file.h"
#include "tidy/tree_rules.h"

namespace nowcalls::tidy {
namespace {

Findings Bans(const std::string& path, const std::string& text) {
  return CheckBans(ParseSource(path, text));
}

Findings IncludesOf(const std::string& path, const std::string& target) {
  return CheckIncludes(ParseSource(path, "// A file.\n#include " + target + "\n"));
}

std::string Repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("comments and literals are no code, and literals are no comments") {
  const auto file = ParseSource("src/core/a.cc",
                                "int a = 1'000;  // x \"y\n"
                                "auto b = \"in // \\\" b\"; /* c\n */ char d = '\"';\n"
                                "auto e = R\"q(in \" )\" e)q\"; int f;\n");
  CHECK(file.code ==
        "int a = 1'000;         \n"
        "auto b = \"          \";     \n    char d = ' ';\n"
        "auto e = R\"             \"; int f;\n");
  CHECK(file.comments ==
        "                // x \"y\n"
        "                       /* c\n */              \n"
        "                                 \n");
}

int MethodsOf(const std::string& body) {
  const auto sizes = ClassSizes(ParseSource("src/core/a.h", "class A {\n" + body + "};\n"));
  return sizes.empty() ? -1 : sizes.back().methods;
}

TEST_CASE("every declaration of a method counts, public and private, with a body or without") {
  CHECK(MethodsOf("") == 0);
  CHECK(MethodsOf("public:\n void F();\nprivate:\n int G() const { return g_(1); }\n int g_;\n") ==
        2);
  CHECK(MethodsOf("void F();\nvoid F(int);\n") == 2);
  CHECK(MethodsOf("static std::map<int, std::string> F(std::function<void(int)> f);\n") == 1);
  CHECK(MethodsOf("template <typename T>\n bool Is(T t) { if (t) { G(); } return false; }\n") == 1);
  CHECK(MethodsOf("bool operator==(const A& a) const;\nvoid operator()(int) const {}\n") == 2);
  CHECK(MethodsOf("virtual auto F() const -> int = 0;\n[[nodiscard]] int G() noexcept;\n") == 2);
}

TEST_CASE("constructors, members and what is defaulted or of others do not count") {
  CHECK(MethodsOf(
            "A();\nexplicit A(int a) : a_{a}, b_(a) { F(); }\n~A() { F(); }\nint a_, b_;\n") == 0);
  CHECK(MethodsOf(
            "A& operator=(const A&) = delete;\nbool operator==(const A&) const = default;\n") == 0);
  CHECK(MethodsOf("std::function<void(int)> f_;\nint a_ = F(1);\nint b_{F(2)};\n") == 0);
  CHECK(MethodsOf("std::function<void()> f_ = [] { G(); };\nvoid (*g_)(int);\n") == 0);
  CHECK(MethodsOf("alignas(64) int a_;\nfriend bool F(const A&);\nusing F = int(int);\n") == 0);
  CHECK(MethodsOf("enum class E { kA };\nstatic_assert(sizeof(int) == 4);\n") == 0);
}

TEST_CASE("a nested class has a count of its own, and a class is found by its definition") {
  const auto sizes =
      ClassSizes(ParseSource("src/core/a.cc",
                             "class B;\nnamespace n {\nvoid G() { F(); }\n"
                             "struct A::Impl final : public n::Base {\n  struct In { void F(); };\n"
                             "  void F();\n  void G();\n};\n}\nA MakeA(class B* b);\n"));
  REQUIRE(sizes.size() == 2);
  CHECK(sizes[0].name == "In");
  CHECK(sizes[0].methods == 1);
  CHECK(sizes[1].name == "A::Impl");
  CHECK(sizes[1].line == 4);
  CHECK(sizes[1].methods == 2);
}

TEST_CASE("a class has at most 40 methods") {
  const auto check = [](const std::string& name, int methods) {
    return CheckClassSizes(ParseSource(
        "src/core/a.h", "class " + name + " {\n" + Repeat("  void F();\n", methods) + "};\n"));
  };
  CHECK(check("A", 40).empty());
  CHECK(check("A", 41) == Findings{"src/core/a.h:1: split A; it has 41 methods, more than 40"});
  CHECK(check("Oracle", 41).empty());
}

TEST_CASE("a module includes itself and what the matrix grants, and nothing else") {
  CHECK(IncludesOf("src/core/a.cc", "\"core/b.h\"").empty());
  CHECK(IncludesOf("src/core/a.cc", "\"ledger/b.h\"").empty());
  CHECK(IncludesOf("src/core/a.cc", "\"nowcalls/status.h\"").empty());
  CHECK(IncludesOf("src/core/a.cc", "<sys/socket.h>").empty());
  CHECK(IncludesOf("tests/unit/core/a_test.cc", "\"store/b.h\"").empty());
  CHECK(IncludesOf("tests/unit/core/a_test.cc", "\"support/b.h\"").empty());
  CHECK(IncludesOf("src/core/a.cc", "\"store/b.h\"") ==
        Findings{"src/core/a.cc:2: core may include base, ledger, not store"});
  CHECK(IncludesOf("src/base/a.h", "\"wire/b.h\"") ==
        Findings{"src/base/a.h:2: base may include nothing, not wire"});
  CHECK(IncludesOf("src/client/a.cc", "\"core/b.h\"").size() == 1);
  CHECK(IncludesOf("src/core/a.cc", "\"b.h\"") ==
        Findings{"src/core/a.cc:2: write b.h relative to src/ (in tests: or to tests/)"});
  CHECK(IncludesOf("src/core/a.cc", "\"support/b.h\"").size() == 1);
  CHECK(IncludesOf("tests/unit/core/a_test.cc", "\"test_paths.h\"").empty());
  CHECK(IncludesOf("src/core/a.cc", "\"test_paths.h\"").size() == 1);
  CHECK(IncludesOf("src/misc/a.cc", "<vector>") ==
        Findings{"src/misc/a.cc:1: src/misc is no module of the include matrix"});
}

TEST_CASE("a folder of a module includes only the folders that it stands on") {
  CHECK(IncludesOf("src/store/rocks/a.cc", "\"store/rocks/b.h\"").empty());
  CHECK(IncludesOf("src/store/rocks/a.cc", "\"store/disk/b.h\"").empty());
  CHECK(IncludesOf("src/store/rocks/a.cc", "\"store/b.h\"").empty());
  CHECK(IncludesOf("src/server/a.cc", "\"store/rocks/b.h\"").empty());
  CHECK(IncludesOf("src/store/disk/a.cc", "\"store/log/b.h\"") ==
        Findings{"src/store/disk/a.cc:2: store/disk may not include store/log"});
  CHECK(IncludesOf("src/store/rocks/a.cc", "\"store/salvage/b.h\"") ==
        Findings{"src/store/rocks/a.cc:2: store/rocks may not include store/salvage"});
  CHECK(IncludesOf("src/store/a.cc", "\"store/rocks/b.h\"") ==
        Findings{"src/store/a.cc:2: the top of store may not include store/rocks"});
  CHECK(IncludesOf("src/store/misc/a.cc", "\"store/disk/b.h\"") ==
        Findings{"src/store/misc/a.cc:2: store/misc is no folder of the include matrix of store"});
}

TEST_CASE("protocols share the engine and the wire, and do not include each other") {
  CHECK(IncludesOf("src/engine/a.cc", "\"engine/sentinel/b.h\"").empty());
  CHECK(IncludesOf("src/engine/sentinel/a.cc", "\"engine/b.h\"").empty());
  CHECK(IncludesOf("src/engine/sentinel/a.cc", "\"engine/rpc/b.h\"") ==
        Findings{"src/engine/sentinel/a.cc:2: engine/sentinel may not include engine/rpc"});
  CHECK(IncludesOf("src/engine/rpc/a.cc", "\"engine/sentinel/b.h\"") ==
        Findings{"src/engine/rpc/a.cc:2: engine/rpc may not include engine/sentinel"});
  CHECK(IncludesOf("src/wire/sentinel/a.cc", "\"wire/b.h\"").empty());
  CHECK(IncludesOf("src/wire/a.cc", "\"wire/sentinel/b.h\"") ==
        Findings{"src/wire/a.cc:2: the top of wire may not include wire/sentinel"});
}

TEST_CASE("a third-party header stays in the modules that own the library") {
  CHECK(IncludesOf("src/store/a.cc", "<rocksdb/db.h>").empty());
  CHECK(IncludesOf("tests/unit/wire/a_test.cc", "<msgpack.hpp>").empty());
  CHECK(IncludesOf("src/server/a.cc", "<rocksdb/db.h>") ==
        Findings{"src/server/a.cc:2: rocksdb/db.h is only for store and tests, not for server"});
  CHECK(IncludesOf("src/core/a.cc", "<msgpack.hpp>").size() == 1);
  CHECK(IncludesOf("src/core/a.cc", "<uv.h>").size() == 1);
  CHECK(IncludesOf("src/engine/a.cc", "<spdlog/spdlog.h>").size() == 1);
  CHECK(IncludesOf("src/store/a.cc", "<nlohmann/json.hpp>").size() == 1);
  CHECK(IncludesOf("src/wire/a.cc", "<absl/container/btree_map.h>").size() == 1);
  CHECK(IncludesOf("src/core/a.cc", "<CLI/CLI.hpp>").size() == 1);
  CHECK(IncludesOf("src/core/a.cc", "<doctest/doctest.h>").size() == 1);
  CHECK(IncludesOf("src/core/a.cc", "<boost/any.hpp>").size() == 1);
}

TEST_CASE("the public API includes the standard library and itself") {
  CHECK(IncludesOf("include/nowcalls/a.h", "<vector>").empty());
  CHECK(IncludesOf("include/nowcalls/a.h", "\"nowcalls/b.h\"").empty());
  CHECK(IncludesOf("include/nowcalls/a.h", "\"base/b.h\"").size() == 1);
  CHECK(IncludesOf("include/nowcalls/a.h", "<unistd.h>").size() == 1);
  CHECK(IncludesOf("include/nowcalls/a.h", "<uv.h>").size() == 1);
}

TEST_CASE("a source file that includes its own header late is found") {
  const auto good = ParseSource("src/core/a.cc", "#include \"core/a.h\"\n#include <vector>\n");
  const auto bad = ParseSource("src/core/a.cc", "#include <vector>\n#include \"core/a.h\"\n");
  CHECK(CheckOwnHeaderFirst(good, true).empty());
  CHECK(CheckOwnHeaderFirst(bad, true).size() == 1);
  CHECK(CheckOwnHeaderFirst(bad, false).empty());
}

TEST_CASE("a long line is found, counted in characters") {
  CHECK(CheckLengths(ParseSource("tools/dev", std::string(100, 'x') + "\n")).empty());
  CHECK(CheckLengths(ParseSource("tools/dev", Repeat("\u00e9", 100) + "\n")).empty());
  CHECK(CheckLengths(ParseSource("tools/dev", "\n" + std::string(101, 'x') + "\n")) ==
        Findings{"tools/dev:2: break the line at column 100"});
}

TEST_CASE("a long file is found") {
  CHECK(CheckLengths(ParseSource("src/core/a.cc", Repeat("\n", 600))).empty());
  CHECK(CheckLengths(ParseSource("src/core/a.cc", Repeat("\n", 601))).size() == 1);
}

TEST_CASE("a long function is found, a long namespace is not") {
  const auto body = [](const std::string& head, int lines) {
    return ParseSource("src/core/a.cc", "\n" + head + " {\n" + Repeat("  a();\n", lines) + "}\n");
  };
  CHECK(CheckFunctionLengths(body("void F()", 69)).empty());
  CHECK(CheckFunctionLengths(body("namespace a", 90)).empty());
  const Findings found = {"src/core/a.cc:2: split the function; it has more than 70 lines"};
  CHECK(CheckFunctionLengths(body("void F()", 70)) == found);
  // Its head counts, too.
  CHECK(CheckFunctionLengths(body("void F(int a,\n       int b)", 68)).empty());
  CHECK(CheckFunctionLengths(body("void F(int a,\n       int b)", 69)) == found);
  CHECK(CheckFunctionLengths(body("A::A(int a)\n    : a_(a),\n      b_(a)", 68)) == found);
  CHECK(CheckFunctionLengths(body("class A\n    : public B", 90)).empty());
}

TEST_CASE(
    "a module that is linked with what it may not include, or without what it may, is found") {
  const auto check = [](const std::string& depends) {
    return CheckDepends(
        ParseSource("src/engine/CMakeLists.txt", "nowcalls_module(engine" + depends + ")\n"));
  };
  CHECK(check("\n  DEPENDS base net access wire core ledger LIBRARIES absl::btree").empty());
  CHECK(check(" DEPENDS base net access wire ledger core store").size() == 1);
  CHECK(check(" DEPENDS base net access ledger core LIBRARIES wire").size() == 1);
  CHECK(check(" DEPENDS base net access wire ledger core LIBRARIES nowcalls_store").size() == 1);
  CHECK(check(" DEPENDS base net access wire ledger core)\ntarget_link_libraries(nowcalls_engine x")
            .size() == 1);
  CHECK(check("s").size() == 1);
}

TEST_CASE("a wrong guard and a missing opening comment are found") {
  const auto header = [](const std::string& opening, const std::string& guard) {
    return opening + "#ifndef " + guard + "\n#define " + guard + "\n\n#endif  // " + guard + "\n";
  };
  const auto check = [](const std::string& path, const std::string& text) {
    return CheckHeaderShape(ParseSource(path, text));
  };
  CHECK(check("src/core/a.h", header("// A.\n", "NOWCALLS_CORE_A_H_")).empty());
  CHECK(check("include/nowcalls/a.h", header("// A.\n", "NOWCALLS_A_H_")).empty());
  CHECK(check("tests/support/a.h", header("// A.\n", "NOWCALLS_SUPPORT_A_H_")).empty());
  CHECK(check("src/core/a.h", header("// A.\n", "NOWCALLS_A_H_")) ==
        Findings{"src/core/a.h:1: guard the header with NOWCALLS_CORE_A_H_"});
  CHECK(check("src/core/a.h", "// A.\n#pragma once\n").size() == 1);
  CHECK(check("src/core/a.h", header("\n", "NOWCALLS_CORE_A_H_")).size() == 1);
}

TEST_CASE("clocks and random numbers are found outside base") {
  for (const char* code :
       {"auto t = time(nullptr);", "gettimeofday(&t, nullptr);",
        "clock_gettime(CLOCK_BOOTTIME, &t);", "auto t = std::chrono::system_clock::now();",
        "using C = std::chrono::steady_clock;", "std::chrono::high_resolution_clock::now();",
        "__builtin_prefetch(at);", "int r = rand();", "srand(1);", "std::random_device d;",
        "std::mt19937 g;", "std::mt19937_64 g;", "std::default_random_engine g;",
        "getrandom(p, 8, 0);", "getentropy(p, 8);"}) {
    CHECK_MESSAGE(Bans("src/core/a.cc", code).size() == 1, std::string(code));
    CHECK_MESSAGE(Bans("tests/unit/core/a_test.cc", code).size() == 1, std::string(code));
    CHECK_MESSAGE(Bans("src/base/a.cc", code).empty(), std::string(code));
  }
  CHECK(Bans("src/core/a.cc", "\nx = ::time(0);") ==
        Findings{
            "src/core/a.cc:2: time is banned here; instead: take the time as an argument, or ask "
            "base/clock.h"});
}

TEST_CASE("names that only contain or resemble a banned one are left alone") {
  for (const char* code : {"Instant time() const;", "event.time(3);", "wall_time(3);", "strand();",
                           "prng->rand();", "// time(nullptr) is banned", "F(\"rand()\");",
                           "static_assert(kA < kB);", "void oversleep();", "int sleep = 0;"}) {
    CHECK_MESSAGE(Bans("src/core/a.cc", code).empty(), std::string(code));
  }
}

TEST_CASE("the library that replaces the system's calls may define what others may not call") {
  CHECK(Bans("tests/shim/a.cc", "int clock_gettime(clockid_t id, timespec* time) {").empty());
  CHECK(Bans("tests/shim/a.cc", "nanosleep(&t, nullptr);").empty());
  CHECK(Bans("tests/support/a.cc", "nanosleep(&t, nullptr);").size() == 1);
  CHECK(Bans("tests/shim/a.cc", "assert(a);").size() == 1);
}

TEST_CASE("sleeps are found outside the crash tests") {
  for (const char* code :
       {"sleep(1);", "usleep(1);", "nanosleep(&t, nullptr);", "clock_nanosleep(0, 0, &t, nullptr);",
        "std::this_thread::sleep_for(ms);", "std::this_thread::sleep_until(t);"}) {
    CHECK_MESSAGE(Bans("src/base/a.cc", code).size() == 1, std::string(code));
    CHECK_MESSAGE(Bans("tests/integration/a_test.cc", code).size() == 1, std::string(code));
    CHECK_MESSAGE(Bans("tests/crash/a.cc", code).empty(), std::string(code));
  }
}

TEST_CASE("endl, assert and namespaces opened in headers are found") {
  CHECK(Bans("tools/a.cc", "out << std::endl;").size() == 1);
  CHECK(Bans("src/base/a.cc", "assert(a);").size() == 1);
  CHECK(Bans("src/base/a.h", "using namespace std;").size() == 1);
  CHECK(Bans("src/base/a.cc", "using namespace std::literals;").empty());
}

TEST_CASE("postponed work is found in comments only") {
  CHECK(Bans("src/base/a.cc", "f();  // TODO: later").size() == 1);
  CHECK(Bans("src/base/a.cc", "/* FIXME */ f();").size() == 1);
  CHECK(Bans("src/base/a.cc", "F(\"TODO\");").empty());
}

TEST_CASE("a stranger at the top level and a missing folder are found") {
  std::vector<std::string> names = {"CMakeLists.txt", "README.md", "data",  "include", "src",
                                    "tests",          "tools",     "build", ".git"};
  CHECK(CheckTopLevel(names).empty());
  names[2] = "notes";
  CHECK(CheckTopLevel(names) == Findings{"notes:1: does not belong at the top level",
                                         "data:1: is missing at the top level"});
}

TEST_CASE("two tests of one name are found, across files and split literals") {
  const auto a = ParseSource("tests/a.cc", "\nTEST_CASE(\"a b\") {}\nTEST_CASE(\"c\") {}\n");
  const auto b = ParseSource("tests/b.cc", "\n\nTEST_CASE_FIXTURE(F, \"a \"\n    \"b\") {}\n");
  CHECK(CheckTestNames({a}).empty());
  CHECK(CheckTestNames({a, b}) ==
        Findings{"tests/b.cc:3: rename the test; tests/a.cc:2 has the same name"});
}

}  // namespace
}  // namespace nowcalls::tidy
