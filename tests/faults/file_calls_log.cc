#include "faults/file_calls_log.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "shim/file_calls.h"

namespace nowcalls::faults {
namespace {

std::string ParentOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool IsIn(const std::string& path, const std::string& root) {
  return path == root || path.starts_with(root + "/");
}

bool Counts(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name != "LOCK" && !name.starts_with("LOG");
}

}  // namespace

testing::Environment FileCallsLog::environment() const {
  testing::Environment environment = testing::WithShim("file_calls_shim");
  environment[testing::kFileCallsVariable] = dir_.Sub("calls");
  return environment;
}

std::vector<FileCall> FileCallsLog::Read() const {
  std::vector<FileCall> calls;
  std::istringstream text(testing::ReadFileToString(dir_.Sub("calls")));
  for (std::string line; std::getline(text, line);) {
    FileCall call;
    std::istringstream fields(line);
    std::getline(fields, call.what, '\t');
    std::getline(fields, call.path, '\t');
    std::getline(fields, call.now, '\t');
    calls.push_back(std::move(call));
  }
  return calls;
}

void DiskView::AddName(const std::string& path) { loose_names_.insert(path); }

void DiskView::Remove(const std::string& path) {
  std::erase_if(files_, [&](const auto& file) { return IsIn(file.first, path); });
  std::erase_if(loose_names_, [&](const std::string& name) { return IsIn(name, path); });
}

void DiskView::Rename(const std::string& path, const std::string& now) {
  if (path == now) return;
  Remove(now);
  std::map<std::string, Content> files;
  std::set<std::string> names;
  for (const auto& [file, content] : files_) {
    if (IsIn(file, path)) files[now + file.substr(path.size())] = content;
  }
  for (const std::string& name : loose_names_) {
    if (IsIn(name, path)) names.insert(now + name.substr(path.size()));
  }
  Remove(path);
  files_.merge(files);
  loose_names_.merge(names);
  AddName(now);
}

void DiskView::Apply(const FileCall& call) {
  const auto file = files_.find(call.path);
  if (call.what == testing::kMadeFile) {
    files_[call.path] = Content::kNone;
    AddName(call.path);
  } else if (call.what == testing::kMadeDir) {
    AddName(call.path);
  } else if (call.what == testing::kWrote) {
    const bool synced = file != files_.end() && file->second == Content::kSynced;
    files_[call.path] = synced ? Content::kRewritten : Content::kUnsynced;
  } else if (call.what == testing::kCut) {
    // Zeros behind a log may stay.
    if (!call.path.ends_with(".log")) files_[call.path] = Content::kUnsynced;
  } else if (call.what == testing::kSynced) {
    if (file != files_.end() && IsLoose(file->second)) file->second = Content::kSynced;
    std::erase_if(loose_names_,
                  [&](const std::string& name) { return ParentOf(name) == call.path; });
  } else if (call.what == testing::kLinked) {
    const Content content = file != files_.end() ? file->second : Content::kSynced;
    files_[call.now] = content;
    AddName(call.now);
  } else if (call.what == testing::kRenamed) {
    Rename(call.path, call.now);
  } else if (call.what == testing::kRemoved) {
    Remove(call.path);
  }
}

void DiskView::HasTwoSlots(const std::string& path) {
  const auto file = files_.find(path);
  if (file != files_.end() && file->second == Content::kRewritten) file->second = Content::kSynced;
}

std::vector<std::string> DiskView::LooseWithin(const std::string& root) const {
  std::vector<std::string> loose;
  for (const auto& [file, content] : files_) {
    if (IsLoose(content) && IsIn(file, root) && Counts(file)) {
      loose.push_back(file + " was written after its last sync");
    }
  }
  for (const std::string& name : loose_names_) {
    if (name != root && IsIn(name, root) && Counts(name)) {
      loose.push_back(name + " is a name for which its directory was not synced");
    }
  }
  return loose;
}

std::vector<std::string> DiskView::UnwrittenIn(const std::string& root) const {
  std::vector<std::string> unwritten;
  for (const auto& [file, content] : files_) {
    if (content == Content::kNone && IsIn(file, root)) unwritten.push_back(file);
  }
  return unwritten;
}

std::vector<std::string> DiskView::Loose(const std::string& root) const {
  std::vector<std::string> loose = LooseWithin(root);
  if (loose_names_.contains(root)) {
    loose.push_back(root + " is a name for which its directory was not synced");
  }
  return loose;
}

std::set<std::string> DiskView::FilesIn(const std::string& root) const {
  std::set<std::string> files;
  for (const auto& [file, content] : files_) {
    if (file.starts_with(root + "/")) files.insert(file.substr(root.size() + 1));
  }
  return files;
}

}  // namespace nowcalls::faults
