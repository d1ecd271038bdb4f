#include "access/access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/hex.h"
#include "base/near_name.h"
#include "base/only_owner_writes.h"
#include "base/os_error.h"
#include "base/text.h"
#include "base/toml_shape.h"

namespace nowcalls::access {
namespace {

constexpr size_t kProblemsMax = 1'000;

// A text of the file and its line.
struct Placed {
  std::string text;
  uint32_t line;
};

class Parser {
 public:
  explicit Parser(std::string file) : file_(std::move(file)) {}

  ParsedAccess Parse(std::string_view text) {
    if (const Status shape = CheckTomlShape(text, "principal"); !shape.ok()) {
      return {.problems = {file_ + ": " + shape.message()}};
    }
    try {
      TakeRoot(toml::parse(text, file_));
    } catch (const toml::parse_error& error) {
      Add(error.source().begin.line, "not valid TOML: " + std::string(error.description()));
    }
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const Placed& a, const Placed& b) { return a.line < b.line; });
    for (const Placed& problem : problems_) {
      parsed_.problems.push_back(file_ + ":" + std::to_string(problem.line) + ": " + problem.text);
    }
    return std::move(parsed_);
  }

 private:
  using Names = std::vector<std::string>;

  void Add(uint32_t line, const std::string& text) {
    if (problems_.size() < kProblemsMax) problems_.push_back({text, line});
  }
  // Of the principal that is being read.
  void Wrong(uint32_t line, const std::string& what) { Add(line, who_ + ": " + what); }

  void TakeRoot(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key.str() == "principal") continue;
      Add(key.source().begin.line,
          "unknown key " + Quoted(key.str()) + "; the file has only [[principal]] and its fields");
    }
    const toml::node* const node = root.get("principal");
    // A file that an editor has just emptied must not close all connections.
    if (node == nullptr || (node->is_array() && node->as_array()->empty())) {
      return Add(1, "there is no [[principal]]: add one with `nowcalls-admin access add`");
    }
    if (!node->is_array()) {
      return Add(node->source().begin.line, "principal must be written as [[principal]]");
    }
    const toml::array& principals = *node->as_array();
    if (principals.size() > AccessList::kPrincipalsMax) {
      return Add(1, std::to_string(principals.size()) + " principals, and at most " +
                        std::to_string(AccessList::kPrincipalsMax) + " are allowed");
    }
    for (size_t i = 0; i < principals.size(); ++i) {
      who_ = "principal " + std::to_string(i + 1);
      const toml::table* const table = principals[i].as_table();
      if (table != nullptr) {
        TakePrincipal(*table);
      } else {
        Wrong(principals[i].source().begin.line, "must be a table, written as [[principal]]");
      }
    }
  }

  void TakePrincipal(const toml::table& table) {
    const size_t problems = problems_.size();
    Entry entry;
    // The name first: other messages have it.
    const uint32_t line = table.source().begin.line;
    TakeName(table, line, &entry.principal.name);
    TakeRole(table, line, &entry.principal.role);
    for (const auto& [key, node] : table) TakeField(key, node, &entry);
    const auto has = [&](const char* key) { return table.contains(key); };
    if (!has("secret_sha256") && !has("certificates") && !has("networks")) {
      Wrong(line, "cannot say who it is: add secret_sha256, certificates or networks");
    }
    if (problems_.size() == problems) parsed_.entries.push_back(std::move(entry));
  }

  void TakeField(const toml::key& key, const toml::node& node, Entry* entry) {
    const std::string_view field = key.str();
    if (field == "name" || field == "role") return;
    if (field == "namespaces") return TakeNamespaces(key, node, &entry->principal.namespaces);
    if (field == "secret_sha256") return TakeSecrets(key, node, &entry->secrets);
    if (field == "certificates") return TakeCertificates(key, node, &entry->certificates);
    if (field == "networks") return TakeNetworks(key, node, &entry->networks);
    static const Names known = {"name",          "role",         "namespaces",
                                "secret_sha256", "certificates", "networks"};
    Wrong(key.source().begin.line, "unknown key " + Quoted(field) + DidYouMean(field, known));
  }

  // nullptr: missing, or of another type; that is told.
  const std::string* TextOf(const toml::table& table, uint32_t line, const std::string& field) {
    const toml::node* const node = table.get(field);
    if (node == nullptr) return Wrong(line, field + " is missing"), nullptr;
    if (node->is_string()) return &node->as_string()->get();
    return Wrong(node->source().begin.line, field + " must be a string"), nullptr;
  }

  void TakeName(const toml::table& table, uint32_t line, std::string* name) {
    const std::string* const text = TextOf(table, line, "name");
    if (text == nullptr) return;
    line = table.get("name")->source().begin.line;
    const Status good = CheckName(*text, kPrincipalNameBytesMax);
    if (!good.ok()) return Wrong(line, "name " + good.message());
    *name = *text;
    if (const auto taken = names_.find(*name); taken != names_.end()) {
      return Wrong(line, "name " + Quoted(*name) + " is that of " + taken->second +
                             ", too; give each a name of its own");
    }
    names_.emplace(*name, who_);
    who_ = "principal " + Quoted(*name);
  }

  void TakeRole(const toml::table& table, uint32_t line, Role* role) {
    const std::string* const text = TextOf(table, line, "role");
    if (text == nullptr) return;
    const std::optional<Role> named = RoleNamed(*text);
    if (named.has_value()) {
      *role = *named;
    } else {
      Wrong(table.get("role")->source().begin.line,
            "role must be observer, client or administrator, got " + Quoted(*text));
    }
  }

  // A list of one may be written as its element. `empty`: what to do about an empty one.
  std::vector<Placed> TextsOf(const toml::key& key, const toml::node& node, size_t most,
                              const std::string& empty) {
    const std::string field(key.str());
    const uint32_t line = key.source().begin.line;
    if (node.is_string()) return {{node.as_string()->get(), node.source().begin.line}};
    const toml::array* const array = node.as_array();
    const auto is_text = [](const toml::node& element) { return element.is_string(); };
    if (array == nullptr || !std::all_of(array->begin(), array->end(), is_text)) {
      return Wrong(line, field + " must be a string or an array of strings"), std::vector<Placed>();
    }
    if (array->empty()) return Wrong(line, field + " is empty; " + empty), std::vector<Placed>();
    if (array->size() > most) {
      Wrong(line, field + " has " + std::to_string(array->size()) + " elements, and at most " +
                      std::to_string(most) + " are allowed");
      return {};
    }
    std::vector<Placed> texts;
    for (const toml::node& element : *array) {
      texts.push_back({element.as_string()->get(), element.source().begin.line});
    }
    return texts;
  }

  void TakeNamespaces(const toml::key& key, const toml::node& node, std::optional<Names>* out) {
    out->emplace();
    for (const auto& [text, line] :
         TextsOf(key, node, AccessList::kNamesMax, "leave it out for all namespaces")) {
      const Status good = CheckNamespacePattern(text);
      if (!good.ok()) Wrong(line, "namespaces: " + Quoted(text) + " " + good.message());
      (*out)->push_back(text);
    }
  }

  // What is written there may be a secret, so it is not shown.
  void TakeSecrets(const toml::key& key, const toml::node& node, std::vector<Digest>* out) {
    for (const auto& [text, line] :
         TextsOf(key, node, AccessList::kSecretsMax, "leave it out for a principal without one")) {
      const Result<std::string> bytes = FromHex(text);
      Digest digest{};
      if (!bytes.ok() || bytes->size() != digest.size()) {
        Wrong(line,
              "secret_sha256 must be 64 hexadecimal digits, as `nowcalls-admin access add` writes "
              "them, or `printf %s \"$SECRET\" | sha256sum`");
        continue;
      }
      std::copy(bytes->begin(), bytes->end(), digest.begin());
      if (digest == DigestOf("")) {
        Wrong(line, "secret_sha256 is that of an empty text; make it of a secret");
      }
      Claim(line, "secret_sha256 is", digest, &digests_);
      out->push_back(digest);
    }
  }

  void TakeCertificates(const toml::key& key, const toml::node& node, Names* out) {
    for (const auto& [text, line] :
         TextsOf(key, node, AccessList::kNamesMax, "leave it out for a principal without one")) {
      const Status good = CheckName(text, kCertificateNameBytesMax);
      if (!good.ok()) Wrong(line, "certificates: a name " + good.message());
      Claim(line, "certificates: " + Quoted(text) + " is", text, &certificates_);
      out->push_back(text);
    }
  }

  void TakeNetworks(const toml::key& key, const toml::node& node, std::vector<Network>* out) {
    for (const auto& [text, line] :
         TextsOf(key, node, AccessList::kNamesMax, "leave it out for a principal without one")) {
      const Result<Network> network = ParseNetwork(text);
      if (!network.ok()) {
        Wrong(line, "networks: " + network.status().message());
        continue;
      }
      Claim(line, "networks: " + Quoted(text) + " is", *network, &networks_);
      out->push_back(*network);
    }
  }

  // Two that show the same could not be told apart.
  template <typename Key>
  void Claim(uint32_t line, const std::string& what, const Key& key,
             std::map<Key, std::string>* owners) {
    const auto [owner, fresh] = owners->emplace(key, who_);
    if (fresh) return;
    Wrong(line, what + (owner->second == who_ ? " there twice; name it once"
                                              : " that of " + owner->second +
                                                    ", too; it can belong to one principal only"));
  }

  const std::string file_;
  ParsedAccess parsed_;
  std::vector<Placed> problems_;
  std::string who_;
  std::map<std::string, std::string> names_;  // With the number of each.
  std::map<Digest, std::string> digests_;     // To each its owner.
  std::map<std::string, std::string> certificates_;
  std::map<Network, std::string> networks_;
};

Status CheckFile(const std::string& file, const struct stat& info, Reader reader) {
  if (!S_ISREG(info.st_mode)) return Status::InvalidArgument(file + " is no regular file");
  NOWCALLS_RETURN_IF_ERROR(CheckOnlyOwnerWrites(file, info.st_mode, "it says who may come in"));
  if (reader == Reader::kTool || info.st_uid == 0 || info.st_uid == geteuid()) return {};
  return Status::InvalidArgument(file + " belongs to user " + std::to_string(info.st_uid) +
                                 ", and only root's files and those of user " +
                                 std::to_string(geteuid()) + " are believed: run `chown root " +
                                 file + "`");
}

// A name that leads nowhere is the operator's mistake; anything else is the system's.
Status CannotOpen(const std::string& file) {
  const int error = errno;
  const std::string message = OsError("open", file).message();
  for (const int mistake : {ENOENT, ENOTDIR, EISDIR, ENAMETOOLONG, ELOOP, EACCES, EPERM, ENXIO}) {
    if (error == mistake) return Status::InvalidArgument(message);
  }
  return Status::IoError(message);
}

}  // namespace

Result<std::string> ReadAccessText(const std::string& file, Reader reader) {
  // O_NONBLOCK: the opening of a pipe does not wait for its writer.
  const int fd = open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return CannotOpen(file);
  const std::unique_ptr<FILE, int (*)(FILE*)> opened(fdopen(fd, "rb"), std::fclose);
  struct stat info {};
  if (opened == nullptr || fstat(fd, &info) != 0) return OsError("look at", file);
  NOWCALLS_RETURN_IF_ERROR(CheckFile(file, info, reader));
  std::string text(AccessList::kFileBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), opened.get()));
  if (std::ferror(opened.get()) != 0) return OsError("read", file);
  if (text.size() <= AccessList::kFileBytesMax) return text;
  return Status::InvalidArgument(file + " is longer than " +
                                 std::to_string(AccessList::kFileBytesMax) + " bytes");
}

ParsedAccess ParseAccess(std::string_view toml, const std::string& file) {
  return Parser(file).Parse(toml);
}

Status CheckNamespacePattern(std::string_view pattern) {
  NOWCALLS_RETURN_IF_ERROR(CheckNamespace(pattern));
  if (pattern.find('*') >= pattern.size() - 1) return {};
  return Status::InvalidArgument("may have '*' at its end only");
}

Result<std::shared_ptr<const AccessList>> AccessList::Parse(std::string_view toml,
                                                            const std::string& file) {
  ParsedAccess parsed = ParseAccess(toml, file);
  if (parsed.problems.empty()) return std::make_shared<const AccessList>(std::move(parsed.entries));
  const size_t others = parsed.problems.size() - 1;
  return Status::InvalidArgument(parsed.problems.front() +
                                 (others == 0 ? ""
                                              : "; and " + Counted(others, "other mistake") +
                                                    ": `nowcalls-admin access check` shows all"));
}

Result<std::shared_ptr<const AccessList>> AccessList::Read(const std::string& file) {
  const Result<std::string> text = ReadAccessText(file, Reader::kServer);
  if (!text.ok()) return text.status();
  return Parse(*text, file);
}

}  // namespace nowcalls::access
