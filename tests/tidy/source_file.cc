#include "tidy/source_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace nowcalls::tidy {

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

namespace {

// Splits a C++ text into code, comments and literals.
class Scanner {
 public:
  explicit Scanner(SourceFile* file) : file_(file), text_(file->text) {}

  void Run() {
    while (at_ < text_.size()) {
      if (At("//")) {
        Blank(End("\n", 2, 0), &file_->code);
      } else if (At("/*")) {
        Blank(End("*/", 2, 2), &file_->code);
      } else if (At("R\"") && !AfterWord()) {
        const size_t open = text_.find('(', at_);
        if (open == std::string::npos) return;
        const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
        BlankLiteral(End(close, open - at_, close.size() - 1), 2);
      } else if (At("\"") || (At("'") && !InNumber())) {
        BlankLiteral(QuoteEnd(), 1);
      } else {
        Blank(at_ + 1, &file_->comments);
      }
    }
  }

 private:
  bool At(std::string_view prefix) const { return text_.compare(at_, prefix.size(), prefix) == 0; }
  bool AfterWord() const { return at_ > 0 && IsWordChar(text_[at_ - 1]); }

  // Is this apostrophe a digit separator?
  bool InNumber() const {
    size_t start = at_;
    while (start > 0 && (IsWordChar(text_[start - 1]) || text_[start - 1] == '\'')) --start;
    return start < at_ && std::isdigit(static_cast<unsigned char>(text_[start])) != 0;
  }

  // The offset `after` bytes past the start of the next `mark`, looked for from `skip` bytes on.
  size_t End(std::string_view mark, size_t skip, size_t after) const {
    const size_t found = text_.find(mark, at_ + skip);
    return found == std::string::npos ? text_.size() : found + after;
  }

  size_t QuoteEnd() const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != text_[at_] && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    return std::min(end, text_.size());
  }

  // Moves to `end`, with the text up to it blanked in one view only.
  void Blank(size_t end, std::string* view) {
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') (*view)[at_] = ' ';
    }
  }

  // The quotes at either side stay in the code view, so that a literal remains visible as one.
  void BlankLiteral(size_t end, size_t quote_bytes) {
    Blank(std::min(at_ + quote_bytes, end), &file_->comments);
    const size_t start = at_;
    Blank(end, &file_->code);
    at_ = start;
    Blank(std::min(end + 1, text_.size()), &file_->comments);
  }

  SourceFile* file_;
  const std::string& text_;
  size_t at_ = 0;
};

bool IsSource(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 9> kExtensions = {".h",    ".cc", ".py", ".cmake", ".go",
                                                           ".java", ".js", ".ts", ".rb"};
  return std::find(kExtensions.begin(), kExtensions.end(), path.extension().string()) !=
             kExtensions.end() ||
         path.filename() == "CMakeLists.txt" || path.filename() == "dev";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

SourceFile ParseSource(std::string path, std::string text) {
  SourceFile file{std::move(path), std::move(text), {}, {}};
  file.code = file.text;
  file.comments = file.text;
  if (file.IsCpp()) Scanner(&file).Run();
  return file;
}

std::vector<SourceFile> LoadTree(const std::string& root) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths = {fs::path(root) / "CMakeLists.txt", fs::path(root) / ".ci/run"};
  for (const char* folder : {"src", "include", "tools", "tests"}) {
    const fs::recursive_directory_iterator all(fs::path(root) / folder);
    for (auto entry = begin(all); entry != end(all); ++entry) {
      if (entry->path().filename() == "node_modules") entry.disable_recursion_pending();
      if (entry->is_regular_file() && IsSource(entry->path())) paths.push_back(entry->path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SourceFile> files;
  files.reserve(paths.size());
  for (const auto& path : paths) {
    files.push_back(ParseSource(fs::relative(path, root).string(), ReadFile(path)));
  }
  return files;
}

std::vector<Include> Includes(const SourceFile& file) {
  std::vector<Include> includes;
  const auto lines = Lines(file.text);
  const auto code_lines = Lines(file.code);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!code_lines[i].starts_with("#include ")) continue;
    const size_t open = lines[i].find_first_of("\"<");
    const size_t close = lines[i].find_first_of("\">", open + 1);
    if (open == std::string_view::npos || close == std::string_view::npos) continue;
    includes.push_back(
        {std::string(lines[i].substr(open + 1, close - open - 1)), static_cast<int>(i) + 1});
  }
  return includes;
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !IsWordChar(text[at - 1]);
    if (begins && (end == text.size() || !IsWordChar(text[end]))) return true;
  }
  return false;
}

int LineAt(std::string_view text, size_t offset) {
  const auto before = text.substr(0, offset);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace nowcalls::tidy
