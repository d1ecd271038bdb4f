#include "tidy/class_rules.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace nowcalls::tidy {
namespace {

struct Exception {
  std::string_view name;
  std::string_view reason;
};

constexpr Exception kExceptions[] = {
    {"Oracle", "the judge of a simulation, with a question and an answer of each request"},
    {"SimServer", "plays loop, threads and driver of a server at once"},
};

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

// Of text behind its opening bracket: what is behind the closing one.
std::string_view BehindBrackets(std::string_view text, char open, char close) {
  int depth = 1;
  size_t at = 0;
  for (; at < text.size() && depth > 0; ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close) --depth;
  }
  return text.substr(at);
}

std::string_view WithoutTemplate(std::string_view statement) {
  statement = Trim(statement);
  while (statement.starts_with("template")) {
    statement = Trim(BehindBrackets(statement.substr(statement.find('<') + 1), '<', '>'));
  }
  return statement;
}

// The name of the class whose body a statement before `{` begins; empty: it is no class.
std::string ClassName(std::string_view statement) {
  statement = WithoutTemplate(statement);
  for (const std::string_view keyword : {"class ", "struct ", "union "}) {
    if (!statement.starts_with(keyword)) continue;
    std::string_view name = statement.substr(keyword.size());
    if (name.find('(') != std::string_view::npos) return "";
    // A base class follows a colon that is not a part of "::".
    for (size_t colon = name.find(':'); colon != std::string_view::npos;
         colon = name.find(':', colon + 2)) {
      if (name.substr(colon).starts_with("::")) continue;
      name = name.substr(0, colon);
      break;
    }
    name = Trim(name);
    if (name.ends_with(" final")) name.remove_suffix(6);
    return name.empty() ? "(unnamed)" : std::string(name);
  }
  return "";
}

// Whether a statement of a class's body, without the `{` or `;` at its end, declares a method.
bool IsMethod(std::string_view statement, std::string_view class_name) {
  statement = WithoutTemplate(statement);
  for (const std::string_view other : {"friend", "using", "static_assert", "typedef"}) {
    if (statement.starts_with(other)) return false;
  }
  if (statement.starts_with(",")) return false;  // The rest of a constructor's initializers.
  if (statement.ends_with("= default") || statement.ends_with("= delete")) return false;
  if (HasWord(statement, "operator")) return true;
  // The name stands before the first parenthesis that is not within <>.
  int angles = 0;
  for (size_t at = 0; at < statement.size(); ++at) {
    const char c = statement[at];
    if (c == '<') ++angles;
    if (c == '>') --angles;
    if (angles > 0) continue;
    if (c == '=') return false;
    if (c != '(') continue;
    const std::string_view before = Trim(statement.substr(0, at));
    size_t begin = before.size();
    while (begin > 0 && (IsWordChar(before[begin - 1]) || before[begin - 1] == '~')) --begin;
    const std::string_view name = before.substr(begin);
    if (name == "alignas" || name == "decltype") {
      return IsMethod(BehindBrackets(statement.substr(at + 1), '(', ')'), class_name);
    }
    const size_t own = class_name.rfind(':');
    if (own != std::string_view::npos) class_name.remove_prefix(own + 1);
    const bool is_pointer = statement.substr(at).starts_with("(*");
    return !name.empty() && !is_pointer && name.front() != '~' && name != class_name;
  }
  return false;
}

// Walks through the braces of a file. A scope that is no class has no name.
class Walk {
 public:
  explicit Walk(const SourceFile& file) : file_(file) {}

  std::vector<ClassSize> Run() {
    const std::string_view code = file_.code;
    for (size_t at = 0; at < code.size(); ++at) {
      const char c = code[at];
      const bool line_begins = at == 0 || code[at - 1] == '\n';
      if (c == '#' && line_begins) {
        at = EndOfDirective(at);
      } else if (c == '{') {
        Open(at);
      } else if (c == '}') {
        Close();
      } else if (c == ';') {
        EndStatement();
      } else if (c == ':' && IsAccess()) {
        statement_.clear();
      } else {
        statement_ += c;
      }
    }
    return std::move(sizes_);
  }

 private:
  size_t EndOfDirective(size_t at) const {
    const std::string_view code = file_.code;
    for (; at < code.size(); ++at) {
      if (code[at] == '\n' && code[at - 1] != '\\') break;
    }
    return at;
  }

  bool IsAccess() const {
    const std::string_view word = Trim(statement_);
    return word == "public" || word == "private" || word == "protected";
  }

  void EndStatement() {
    if (!scopes_.empty() && !scopes_.back().name.empty()) {
      scopes_.back().methods += IsMethod(statement_, scopes_.back().name) ? 1 : 0;
    }
    statement_.clear();
  }

  void Open(size_t at) {
    ClassSize scope{ClassName(statement_)};
    if (scope.name.empty()) {
      EndStatement();
    } else {
      scope.line = static_cast<size_t>(LineAt(file_.code, at));
    }
    statement_.clear();
    scopes_.push_back(std::move(scope));
  }

  void Close() {
    statement_.clear();
    if (scopes_.empty()) return;
    if (!scopes_.back().name.empty()) sizes_.push_back(scopes_.back());
    scopes_.pop_back();
  }

  const SourceFile& file_;
  std::string statement_;  // What has been read of it.
  std::vector<ClassSize> scopes_;
  std::vector<ClassSize> sizes_;
};

}  // namespace

std::vector<ClassSize> ClassSizes(const SourceFile& file) {
  return file.IsCpp() ? Walk(file).Run() : std::vector<ClassSize>();
}

Findings CheckClassSizes(const SourceFile& file) {
  Findings findings;
  for (const ClassSize& size : ClassSizes(file)) {
    const bool listed =
        std::any_of(std::begin(kExceptions), std::end(kExceptions),
                    [&](const Exception& exception) { return exception.name == size.name; });
    if (size.methods <= kMethodsMax || listed) continue;
    findings.push_back(file.path + ":" + std::to_string(size.line) + ": split " + size.name +
                       "; it has " + std::to_string(size.methods) + " methods, more than 40");
  }
  return findings;
}

}  // namespace nowcalls::tidy
