#include "tidy/document_rules.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>

#include "tidy/code_rules.h"
#include "tidy/source_file.h"

namespace nowcalls::tidy {
namespace {

namespace fs = std::filesystem;

std::string At(const std::string& path, size_t line) {
  return path + ":" + std::to_string(line) + ": ";
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::string_view Trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// "- ", "* " or "12. " before the text of an item.
bool BeginsItem(std::string_view line) {
  line = Trimmed(line);
  if (line.starts_with("- ") || line.starts_with("* ")) return true;
  const size_t digits = line.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && line.substr(digits).starts_with(". ");
}

enum class Kind { kBlank, kText, kHeading, kTable, kCode };

// The kind of a line outside of fences, behind a line of kind `before`. Four blanks begin code
// unless they go on with text.
Kind KindOf(std::string_view line, Kind before) {
  if (IsBlank(line)) return Kind::kBlank;
  if (line.starts_with("#")) return Kind::kHeading;
  if (line.starts_with("    ") && before != Kind::kText) return Kind::kCode;
  return Trimmed(line).starts_with("|") ? Kind::kTable : Kind::kText;
}

std::vector<Kind> KindsOf(const std::vector<std::string_view>& lines) {
  std::vector<Kind> kinds;
  bool fenced = false;
  for (const std::string_view line : lines) {
    const Kind before = kinds.empty() ? Kind::kBlank : kinds.back();
    const bool fence = Trimmed(line).starts_with("```");
    kinds.push_back(fence || fenced ? Kind::kCode : KindOf(line, before));
    if (fence) fenced = !fenced;
  }
  return kinds;
}

int WordsIn(std::string_view text) {
  std::istringstream words{std::string(text)};
  return static_cast<int>(std::distance(std::istream_iterator<std::string>(words), {}));
}

// A paragraph or an item, its lines joined by newlines.
struct Passage {
  size_t line;
  std::string text;
};

std::vector<Passage> PassagesOf(const Document& document) {
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  std::vector<Passage> passages;
  bool goes_on = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] != Kind::kText) {
      goes_on = false;
      continue;
    }
    if (!goes_on || BeginsItem(lines[i])) passages.push_back({i + 1, {}});
    passages.back().text += std::string(lines[i]) + "\n";
    goes_on = true;
  }
  return passages;
}

bool EndsSentence(std::string_view text, size_t at) {
  return (text[at] == '.' || text[at] == '!' || text[at] == '?' || text[at] == ':') &&
         at + 1 < text.size() && std::isspace(static_cast<unsigned char>(text[at + 1])) != 0;
}

// The text with the inside of `code` and of fenced or indented blocks blanked out.
std::string WithoutCode(const Document& document) {
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    text += kinds[i] == Kind::kCode ? std::string(lines[i].size(), ' ') : std::string(lines[i]);
    text += '\n';
  }
  for (size_t open = text.find('`'); open != std::string::npos; open = text.find('`', open)) {
    const size_t close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    for (size_t i = open; i <= close; ++i) text[i] = text[i] == '\n' ? '\n' : ' ';
  }
  return text;
}

// What stands between backticks in text, headings and tables, with its line.
std::vector<std::pair<size_t, std::string>> InlineCodeOf(const Document& document) {
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  std::vector<std::pair<size_t, std::string>> found;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] == Kind::kCode) continue;
    for (size_t open = lines[i].find('`'); open != std::string_view::npos;) {
      const size_t close = lines[i].find('`', open + 1);
      if (close == std::string_view::npos) break;
      found.emplace_back(i + 1, std::string(lines[i].substr(open + 1, close - open - 1)));
      open = lines[i].find('`', close + 1);
    }
  }
  return found;
}

bool NamesSource(const std::string& name) {
  return name.find_first_of(" *<>()") == std::string::npos && name.find_first_not_of('.') == 0 &&
         (name.ends_with(".h") || name.ends_with(".cc") || name.ends_with(".md"));
}

bool IsNamed(const std::string& name, const std::string& folder,
             const std::set<std::string>& paths) {
  for (const std::string& from :
       {std::string(), std::string("src"), std::string("tests"), std::string("include"), folder}) {
    if (paths.contains((fs::path(from) / name).lexically_normal().string())) return true;
  }
  return name.find('/') == std::string::npos &&
         std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return path.ends_with("/" + name); });
}

// As GitHub makes it: lower case, blanks as hyphens, no other punctuation.
std::string AnchorOf(std::string_view heading) {
  std::string anchor;
  for (const char c : Trimmed(heading.substr(heading.find_first_not_of('#')))) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
      anchor += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> AnchorsOf(const Document& document) {
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  std::set<std::string> anchors;
  std::map<std::string, int> times;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] != Kind::kHeading) continue;
    const std::string anchor = AnchorOf(lines[i]);
    const int before = times[anchor]++;
    anchors.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return anchors;
}

struct Link {
  size_t line;
  std::string target;
};

std::vector<Link> LinksOf(const Document& document) {
  const std::string text = WithoutCode(document);
  std::vector<Link> links;
  for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const size_t end = text.find(')', at);
    if (end == std::string::npos) break;
    links.push_back({static_cast<size_t>(LineAt(text, at)), text.substr(at + 2, end - at - 2)});
  }
  return links;
}

bool LeadsToWeb(const std::string& target) {
  return target.find("://") != std::string::npos || target.starts_with("mailto:");
}

struct SizeLimit {
  int lines;  // 0: none.
  int words;  // 0: none.
};

SizeLimit LimitOf(const std::string& path) {
  if (path == "README.md") return {150, 1500};
  if (path == "src/README.md") return {250, 0};
  if (path == "tests/README.md") return {150, 0};
  if (path.starts_with("tools/manual/")) return {249, 0};
  if (path.starts_with("src/") && path.ends_with("/README.md")) return {400, 0};
  return {0, 0};
}

// Where a row of a table is divided into cells.
std::vector<size_t> BarsOf(std::string_view row) {
  std::vector<size_t> bars;
  bool code = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '\\') {
      ++i;
    } else if (row[i] == '`') {
      code = !code;
    } else if (row[i] == '|' && !code) {
      bars.push_back(i);
    }
  }
  return bars;
}

bool IsDashes(std::string_view row) {
  return row.find_first_not_of("|-: ") == std::string_view::npos &&
         row.find('-') != std::string_view::npos;
}

// Why `line` is no heading; empty when it is one.
std::string WrongWithHeading(std::string_view line) {
  const size_t level = std::min(line.find_first_not_of('#'), line.size());
  const std::string_view title = line.substr(level);
  if (level > 6) return "a heading has at most six levels";
  if (title.size() < 2 || title[0] != ' ' || title[1] == ' ') {
    return "put one blank between # and the title";
  }
  if (title.back() == ' ' || title.find(" :") != std::string_view::npos) {
    return "take the blank behind the title or before its colon away";
  }
  return {};
}

// The names of classes, "Sweep" or "core::Sweep", that the first cell of a row has in `code`.
std::vector<std::string> ClassesIn(std::string_view row) {
  const auto bars = BarsOf(row);
  if (bars.size() < 2) return {};
  std::string_view cell = row.substr(bars[0], bars[1] - bars[0]);
  std::vector<std::string> names;
  for (size_t open = cell.find('`'); open != std::string_view::npos; open = cell.find('`')) {
    cell.remove_prefix(open + 1);
    const size_t close = std::min(cell.find('`'), cell.size());
    std::string_view name = cell.substr(0, close);
    cell.remove_prefix(std::min(close + 1, cell.size()));
    if (name.rfind("::") != std::string_view::npos) name.remove_prefix(name.rfind("::") + 2);
    const bool word = std::all_of(name.begin(), name.end(), IsWordChar);
    if (word && !name.empty() && std::isupper(static_cast<unsigned char>(name[0])) != 0) {
      names.emplace_back(name);
    }
  }
  return names;
}

// A file or folder is entered unless it is build/ or its name begins with a dot.
bool IsEntered(const fs::directory_entry& entry, const fs::path& root) {
  const std::string name = entry.path().filename().string();
  return !name.starts_with(".") && name != "node_modules" && entry.path() != root / "build";
}

std::vector<fs::path> EntriesOf(const fs::path& root) {
  std::vector<fs::path> found;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator();
       ++it) {
    if (!IsEntered(*it, root)) {
      it.disable_recursion_pending();
      continue;
    }
    found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::vector<Document> LoadDocuments(const std::string& root) {
  std::vector<Document> documents;
  for (const auto& path : EntriesOf(root)) {
    if (path.extension() != ".md") continue;
    std::ifstream in(path, std::ios::binary);
    documents.push_back({fs::relative(path, root).string(),
                         {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}});
  }
  return documents;
}

std::set<std::string> LoadPaths(const std::string& root) {
  std::set<std::string> paths;
  for (const auto& path : EntriesOf(root)) paths.insert(fs::relative(path, root).string());
  return paths;
}

Findings CheckDocumentLines(const Document& document) {
  Findings findings;
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] == Kind::kTable || ColumnsOf(lines[i]) <= kDocumentColumnsMax) continue;
    findings.push_back(At(document.path, i + 1) + "break the line at column 120");
  }
  return findings;
}

Findings CheckDocumentSize(const Document& document) {
  Findings findings;
  const SizeLimit limit = LimitOf(document.path);
  const auto lines = Lines(document.text).size();
  if (limit.lines > 0 && lines > static_cast<size_t>(limit.lines)) {
    findings.push_back(At(document.path, lines) + "shorten the document to " +
                       std::to_string(limit.lines) + " lines");
  }
  const int words = WordsIn(document.text);
  if (limit.words > 0 && words > limit.words) {
    findings.push_back(At(document.path, lines) + "shorten the document to " +
                       std::to_string(limit.words) + " words; it has " + std::to_string(words));
  }
  return findings;
}

Findings CheckSentences(const Document& document) {
  Findings findings;
  for (const auto& [line, text] : PassagesOf(document)) {
    size_t begin = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      if (!EndsSentence(text, at) && at + 1 < text.size()) continue;
      const int words = WordsIn(text.substr(begin, at + 1 - begin));
      const size_t word = text.find_first_not_of(" \n", begin);
      if (words > kSentenceWordsMax) {
        findings.push_back(At(document.path, line + static_cast<size_t>(LineAt(text, word)) - 1) +
                           "split the sentence; it has " + std::to_string(words) +
                           " words, not at most 40");
      }
      begin = at + 1;
    }
  }
  return findings;
}

Findings CheckDecisions(const Document& document) {
  if (!document.path.starts_with("src/") || document.path == "src/README.md") return {};
  if (!document.path.ends_with("/README.md")) return {};
  Findings findings;
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  size_t heading = 0;  // Line of the decision that is being counted; 0: none.
  int counted = 0;
  for (size_t i = 0; i <= lines.size(); ++i) {
    if (i < lines.size() && kinds[i] != Kind::kHeading) {
      if (kinds[i] != Kind::kBlank) ++counted;
      continue;
    }
    if (heading != 0 && counted > 10) {
      findings.push_back(At(document.path, heading) + "shorten the decision to 10 lines; it has " +
                         std::to_string(counted));
    }
    counted = 0;
    heading = 0;
    if (i == lines.size()) break;
    const auto title = Trimmed(lines[i].substr(lines[i].find_first_not_of('#')));
    if (BeginsItem(title)) heading = i + 1;
  }
  return findings;
}

Findings CheckHeadings(const Document& document) {
  Findings findings;
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  size_t before = 0;  // Level of the heading before; 0: none.
  if (kinds.empty() || kinds[0] != Kind::kHeading) {
    findings.push_back(At(document.path, 1) + "begin the document with a heading");
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] != Kind::kHeading) continue;
    const size_t level = std::min(lines[i].find_first_not_of('#'), lines[i].size());
    std::string wrong = WrongWithHeading(lines[i]);
    if (wrong.empty() && level > before + 1) wrong = "a level of headings is left out";
    if (wrong.empty() && level == 1 && before > 0) wrong = "a document has one heading with one #";
    if (!wrong.empty()) findings.push_back(At(document.path, i + 1) + wrong);
    before = level;
  }
  return findings;
}

Findings CheckTables(const Document& document) {
  Findings findings;
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  size_t cells = 0;  // Bars of a row of this table; 0: outside of tables.
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] != Kind::kTable) {
      cells = 0;
      continue;
    }
    const auto bars = BarsOf(lines[i]);
    if (cells == 0 && (i + 1 == lines.size() || !IsDashes(lines[i + 1]))) {
      findings.push_back(At(document.path, i + 1) + "a table needs a head and |---| below it");
    }
    if (cells == 0) cells = bars.size();
    if (lines[i].find_last_not_of(' ') != bars.back()) {
      findings.push_back(At(document.path, i + 1) + "end the row of the table with |");
    } else if (bars.size() != cells) {
      findings.push_back(At(document.path, i + 1) + "the row has " +
                         std::to_string(bars.size() - 1) + " cells, and its table " +
                         std::to_string(cells - 1));
    }
  }
  return findings;
}

Findings CheckPhrases(const Document& document) {
  static const std::map<std::string, std::string> phrases = {
      {"will come", "say what there is, not what will come"},
      {"will be added", "say what there is, not what will be added"},
      {"ho may enter", "leave who may include a room to the table of src/README.md"},
      {"hat it includes", "leave what a room may include to the table of src/README.md"}};
  if (!document.path.starts_with("src/")) return {};
  Findings findings;
  for (const auto& [line, text] : PassagesOf(document)) {
    std::string flat = text;
    std::replace(flat.begin(), flat.end(), '\n', ' ');
    for (const auto& [phrase, advice] : phrases) {
      const size_t at = flat.find(phrase);
      if (at == std::string::npos) continue;
      const auto further = static_cast<size_t>(LineAt(text, at)) - 1;
      findings.push_back(At(document.path, line + further) + advice);
    }
  }
  return findings;
}

Findings CheckClassNames(const Document& document, const std::vector<SourceFile>& sources) {
  if (!document.path.starts_with("src/") || document.path == "src/README.md") return {};
  if (!document.path.ends_with("/README.md")) return {};
  const std::string room = fs::path(document.path).parent_path().string() + "/";
  Findings findings;
  const auto lines = Lines(document.text);
  const auto kinds = KindsOf(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (kinds[i] != Kind::kTable) continue;
    for (const auto& name : ClassesIn(lines[i])) {
      const bool known = std::any_of(sources.begin(), sources.end(), [&](const SourceFile& file) {
        return (file.path.starts_with(room) || file.path.starts_with("include/")) &&
               HasWord(file.code, name);
      });
      if (!known) findings.push_back(At(document.path, i + 1) + "the room has no " + name);
    }
  }
  return findings;
}

Findings CheckLinks(const std::vector<Document>& documents, const std::set<std::string>& paths) {
  std::map<std::string, std::set<std::string>> anchors;
  for (const auto& document : documents) anchors[document.path] = AnchorsOf(document);
  Findings findings;
  for (const auto& document : documents) {
    for (const auto& [line, target] : LinksOf(document)) {
      if (LeadsToWeb(target)) continue;
      const size_t hash = std::min(target.find('#'), target.size());
      const fs::path folder = fs::path(document.path).parent_path();
      std::string path = document.path;
      if (hash > 0) path = (folder / target.substr(0, hash)).lexically_normal().string();
      if (path.ends_with('/')) path.pop_back();
      if (!paths.contains(path)) {
        findings.push_back(At(document.path, line) + "the link leads nowhere: " + target);
      } else if (hash < target.size() && !anchors[path].contains(target.substr(hash + 1))) {
        findings.push_back(At(document.path, line) + "no heading has this anchor: " + target);
      }
    }
  }
  return findings;
}

Findings CheckFileNames(const Document& document, const std::set<std::string>& paths) {
  Findings findings;
  if (document.path.ends_with("NOTEBOOK.md")) return findings;
  const std::string folder = fs::path(document.path).parent_path().string();
  for (const auto& [line, name] : InlineCodeOf(document)) {
    if (!NamesSource(name) || IsNamed(name, folder, paths)) continue;
    findings.push_back(At(document.path, line) + "there is no file " + name);
  }
  return findings;
}

}  // namespace nowcalls::tidy
