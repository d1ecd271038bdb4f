#include "crash/history.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/clock.h"

namespace nowcalls::crash {
namespace {

struct OutcomeWord {
  Outcome outcome;
  const char* word;
};
constexpr OutcomeWord kOutcomeWords[] = {
    {Outcome::kUnknown, "unknown"},     {Outcome::kGranted, "granted"},
    {Outcome::kReleased, "released"},   {Outcome::kKept, "kept"},
    {Outcome::kGone, "gone"},           {Outcome::kRefused, "refused"},
    {Outcome::kReclaimed, "reclaimed"}, {Outcome::kDone, "done"}};

// What a request is about.
enum class Subject { kAcquire, kToken, kRequest, kFlow, kHolder };

struct ActionWord {
  const char* word;
  Action action;
  Subject subject;
};
constexpr ActionWord kActionWords[] = {{"acquire", Action::kAcquire, Subject::kAcquire},
                                       {"release", Action::kRelease, Subject::kToken},
                                       {"keep", Action::kKeep, Subject::kToken},
                                       {"cancel", Action::kCancel, Subject::kRequest},
                                       {"reclaim", Action::kReclaim, Subject::kToken},
                                       {"reclaim_flow", Action::kReclaimFlow, Subject::kFlow},
                                       {"purge", Action::kPurge, Subject::kFlow},
                                       {"reclaim_client", Action::kReclaimClient, Subject::kHolder},
                                       {"drain", Action::kDrain, Subject::kFlow},
                                       {"undrain", Action::kUndrain, Subject::kFlow}};

const ActionWord& WordsOf(Action action) {
  for (const auto& entry : kActionWords) {
    if (entry.action == action) return entry;
  }
  std::abort();
}

const char* WordOf(Outcome outcome) {
  for (const auto& entry : kOutcomeWords) {
    if (entry.outcome == outcome) return entry.word;
  }
  return "?";
}

std::string Now() { return std::to_string(BoottimeUs()); }

[[noreturn]] void BadLine(const std::string& line) {
  throw std::runtime_error("not a line of a client log: " + line);
}

// A group gives one operation for each of its items.
std::vector<Operation> ParseAsk(std::istringstream* words, const std::string& line) {
  std::vector<Operation> items(1);
  Operation* operation = &items.front();
  std::string action;
  *words >> operation->number >> operation->asked_us >> operation->client >> action;
  const ActionWord* known = nullptr;
  for (const auto& entry : kActionWords) {
    if (action == entry.word) known = &entry;
  }
  if (known == nullptr) BadLine(line);
  operation->action = known->action;
  switch (known->subject) {
    case Subject::kAcquire:
      *words >> operation->flow_id >> operation->count >> operation->request_id >>
          operation->wait_ms >> operation->wanted_ms;
      break;
    case Subject::kToken: *words >> operation->token_id; break;
    case Subject::kRequest: *words >> operation->request_id; break;
    case Subject::kFlow: *words >> operation->flow_id; break;
    case Subject::kHolder: *words >> operation->holder; break;
  }
  if (words->fail()) BadLine(line);
  if (known->subject != Subject::kAcquire) return items;
  for (Operation item = items.front(); *words >> item.flow_id;) {
    if (!(*words >> item.count)) BadLine(line);
    items.push_back(item);
  }
  for (Operation& item : items) item.items = items.size();
  return items;
}

void ParseAnswer(std::istringstream* words, const std::string& line, std::span<Operation> items) {
  Operation* operation = &items.front();
  std::string outcome;
  *words >> operation->answered_us >> outcome;
  for (const auto& entry : kOutcomeWords) {
    if (outcome == entry.word) operation->outcome = entry.outcome;
  }
  if (operation->outcome == Outcome::kGranted) {
    *words >> operation->token_id >> operation->fence >> operation->now_calls >> operation->level;
  }
  if (operation->outcome == Outcome::kGranted || operation->outcome == Outcome::kKept) {
    *words >> operation->hold_ms;
  }
  if (operation->outcome == Outcome::kReclaimed) *words >> operation->reclaimed >> operation->more;
  for (Operation& item : items.subspan(1)) {
    item.outcome = operation->outcome;
    item.answered_us = operation->answered_us;
    if (item.outcome == Outcome::kGranted) *words >> item.token_id >> item.fence >> item.hold_ms;
  }
  if (operation->outcome == Outcome::kUnknown || words->fail()) BadLine(line);
  if (operation->outcome == Outcome::kGranted) SetGrant(items);
}

}  // namespace

HistoryWriter::HistoryWriter(const std::string& path) : file_(std::fopen(path.c_str(), "a")) {
  if (file_ == nullptr) throw std::runtime_error("cannot append to " + path);
}

void HistoryWriter::Line(const std::string& line) {
  const std::string text = line + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) throw std::runtime_error("cannot write a log");
}

void HistoryWriter::Link(const std::string& client, bool up) {
  Line((up ? "up " : "down ") + Now() + " " + client);
}

void HistoryWriter::Lost(const std::string& client, uint64_t token_id, const std::string& reason) {
  Line("lost " + Now() + " " + client + " " + std::to_string(token_id) + " " + reason);
}

void HistoryWriter::Ask(Items items) {
  const Operation& asked = items.front();
  const ActionWord& words = WordsOf(asked.action);
  std::string line = "ask " + std::to_string(asked.number) + " " + Now() + " " + asked.client +
                     " " + words.word + " ";
  switch (words.subject) {
    case Subject::kAcquire:
      line += std::to_string(asked.flow_id) + " " + std::to_string(asked.count) + " " +
              std::to_string(asked.request_id) + " " + std::to_string(asked.wait_ms) + " " +
              std::to_string(asked.wanted_ms);
      for (const Operation& item : items.subspan(1)) {
        line += " " + std::to_string(item.flow_id) + " " + std::to_string(item.count);
      }
      break;
    case Subject::kToken: line += std::to_string(asked.token_id); break;
    case Subject::kRequest: line += std::to_string(asked.request_id); break;
    case Subject::kFlow: line += std::to_string(asked.flow_id); break;
    case Subject::kHolder: line += asked.holder; break;
  }
  Line(line);
}

void HistoryWriter::Answer(Items items) {
  const Operation& answered = items.front();
  std::string line =
      "answer " + std::to_string(answered.number) + " " + Now() + " " + WordOf(answered.outcome);
  if (answered.outcome == Outcome::kGranted) {
    line += " " + std::to_string(answered.token_id) + " " + std::to_string(answered.fence) + " " +
            std::to_string(answered.now_calls) + " " + std::to_string(answered.level);
  }
  if (answered.outcome == Outcome::kGranted || answered.outcome == Outcome::kKept) {
    line += " " + std::to_string(answered.hold_ms);
  }
  if (answered.outcome == Outcome::kGranted) {
    for (const Operation& item : items.subspan(1)) {
      line += " " + std::to_string(item.token_id) + " " + std::to_string(item.fence) + " " +
              std::to_string(item.hold_ms);
    }
  }
  if (answered.outcome == Outcome::kReclaimed) {
    line += " " + std::to_string(answered.reclaimed) + (answered.more ? " 1" : " 0");
  }
  Line(line);
}

void SetGrant(std::span<Operation> items) {
  std::vector<uint64_t> grant;
  for (const Operation& item : items) grant.push_back(item.token_id);
  std::sort(grant.begin(), grant.end());
  for (Operation& item : items) item.grant = grant;
}

std::vector<Items> History::Acquires() const {
  std::vector<Items> acquires;
  for (size_t i = 0; i < operations.size(); i += operations[i].items) {
    if (operations[i].action != Action::kAcquire) continue;
    acquires.emplace_back(&operations[i], operations[i].items);
  }
  return acquires;
}

void ParseHistory(const std::string& text, History* history) {
  std::map<int64_t, size_t> open;  // Numbers start anew in each log.
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind == "up" || kind == "down") {
      LinkEvent event;
      event.up = kind == "up";
      words >> event.at_us >> event.client;
      if (words.fail()) BadLine(line);
      history->links.push_back(event);
    } else if (kind == "lost") {
      LostEvent event;
      words >> event.at_us >> event.client >> event.token_id >> event.reason;
      if (words.fail()) BadLine(line);
      history->lost.push_back(event);
    } else if (kind == "ask") {
      const std::vector<Operation> items = ParseAsk(&words, line);
      open[items.front().number] = history->operations.size();
      history->operations.insert(history->operations.end(), items.begin(), items.end());
    } else if (kind == "answer") {
      int64_t number = 0;
      words >> number;
      const auto asked = open.find(number);
      if (asked == open.end()) BadLine(line);
      Operation* first = &history->operations[asked->second];
      ParseAnswer(&words, line, {first, first->items});
      open.erase(asked);
    } else {
      BadLine(line);
    }
  }
}

void ReadHistory(const std::string& path, History* history) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  ParseHistory({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}, history);
}

std::string Describe(const Operation& operation) {
  std::ostringstream text;
  text << operation.asked_us << " " << operation.client;
  const ActionWord& words = WordsOf(operation.action);
  text << " " << words.word << " ";
  switch (words.subject) {
    case Subject::kAcquire:
      text << "flow " << operation.flow_id << " count " << operation.count;
      if (operation.items > 1) text << ", one of " << operation.items << " items,";
      if (operation.request_id != 0) text << " request " << operation.request_id;
      if (operation.wait_ms != 0) text << " wait " << operation.wait_ms << " ms";
      if (operation.wanted_ms != 0) text << " for " << operation.wanted_ms << " ms";
      break;
    case Subject::kToken: text << operation.token_id; break;
    case Subject::kRequest: text << "request " << operation.request_id; break;
    case Subject::kFlow: text << "flow " << operation.flow_id; break;
    case Subject::kHolder: text << operation.holder; break;
  }
  text << " -> " << WordOf(operation.outcome);
  if (operation.outcome == Outcome::kGranted) {
    text << " token " << operation.token_id << " fence " << operation.fence << " nowCalls "
         << operation.now_calls << "/" << operation.level;
  }
  if (operation.outcome == Outcome::kReclaimed) {
    text << " " << operation.reclaimed << (operation.more ? ", and there are more" : "");
  }
  if (operation.hold_ms > 0) text << " hold " << operation.hold_ms << " ms";
  if (operation.outcome != Outcome::kUnknown) text << " at " << operation.answered_us;
  return text.str();
}

}  // namespace nowcalls::crash
