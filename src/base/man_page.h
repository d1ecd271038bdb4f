// Man pages out of the tables that --help is printed from. `--help=man` prints them.
//
// Thread: any. Texts are plain; paragraphs are divided by empty lines.
#ifndef NOWCALLS_BASE_MAN_PAGE_H_
#define NOWCALLS_BASE_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>
#include <string_view>

namespace nowcalls {

inline bool WantsManPage(int argc, const char* const* argv) {
  return argc == 2 && std::string_view(argv[1]) == "--help=man";
}

class ManPage {
 public:
  // `what` is what the program does, in a few words that begin small.
  ManPage(const std::string& name, int section, const std::string& what, const std::string& usage)
      : text_(".TH " + Escaped(name) + " " + std::to_string(section) +
              " \"\" nowcalls nowcalls\n") {
    Section("NAME");
    text_ += Escaped(name) + " \\- " + Escaped(what) + "\n";
    Section("SYNOPSIS");
    text_ += Escaped(usage) + "\n";
  }

  void Section(const std::string& heading) { text_ += ".SH " + Escaped(heading) + "\n"; }
  void Part(const std::string& heading) { text_ += ".SS " + Escaped(heading) + "\n"; }
  void Option(const std::string& names, const std::string& text) {
    text_ += ".TP\n.B " + Escaped(names) + "\n" + Escaped(text) + "\n";
  }
  void Paragraphs(const std::string& text) {
    std::istringstream lines("\n" + text);
    for (std::string line; std::getline(lines, line);) {
      text_ += line.empty() ? ".PP\n" : Escaped(line) + "\n";
    }
  }

  // With the last sections. `examples`: a command a line.
  std::string Finished(const std::string& examples) const {
    std::string text = text_ + ".SH EXAMPLES\n.nf\n";
    std::istringstream lines(examples);
    for (std::string line; std::getline(lines, line);) text += Escaped(line) + "\n";
    return text +
           ".fi\n.SH SEE ALSO\n\\fBnowcalls\\fR(1), \\fBnowcalls\\-bench\\fR(1), "
           "\\fBnowcalls\\-admin\\fR(8), \\fBnowcalls\\-server\\fR(8).\n"
           "The manual is in the documentation directory, under tools/manual.\n";
  }

 private:
  static std::string Escaped(const std::string& line) {
    std::string escaped = line.starts_with('.') || line.starts_with('\'') ? "\\&" : "";
    for (const char c : line) escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    return escaped;
  }

  std::string text_;
};

inline void AppendOptions(const CLI::App& app, ManPage* page) {
  const CLI::Formatter format;
  for (const bool positional : {true, false}) {
    for (const CLI::Option* option : app.get_options()) {
      const bool inherited = app.get_parent() != nullptr && option == app.get_help_ptr();
      if (option->get_positional() != positional || inherited) continue;
      page->Option(format.make_option_name(option, positional) + format.make_option_opts(option),
                   option->get_description());
    }
  }
}

// `path`: of `app`, behind the program's name.
inline void AppendCommands(const CLI::App& app, const std::string& path, ManPage* page) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string name = path + command->get_name();
    if (command->get_subcommands(nullptr).empty()) {
      page->Part(name);
      page->Paragraphs(command->get_description());
      AppendOptions(*command, page);
      if (command->get_footer() != app.get_footer()) page->Paragraphs(command->get_footer());
    }
    AppendCommands(*command, name + " ", page);
  }
}

// Of a program whose table CLI11 has.
inline std::string CommandManPage(const CLI::App& app, int section, const std::string& examples) {
  std::string what = app.get_description();  // "Takes tokens."
  what.front() = static_cast<char>(what.front() - 'A' + 'a');
  what.pop_back();
  std::string usage = CLI::Formatter().make_usage(&app, app.get_name());  // "Usage: ...\n"
  usage.pop_back();
  ManPage page(app.get_name(), section, what, usage.substr(usage.find(' ') + 1));
  page.Section("OPTIONS");
  AppendOptions(app, &page);
  page.Section("SUBCOMMANDS");
  AppendCommands(app, "", &page);
  page.Section("NOTES");
  page.Paragraphs(app.get_footer());
  return page.Finished(examples);
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_MAN_PAGE_H_
