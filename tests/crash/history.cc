#include "crash/history.h"

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
    {Outcome::kUnknown, "unknown"},   {Outcome::kGranted, "granted"},
    {Outcome::kReleased, "released"}, {Outcome::kKept, "kept"},
    {Outcome::kGone, "gone"},         {Outcome::kRefused, "refused"}};

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

void ParseAsk(std::istringstream* words, const std::string& line, Operation* operation) {
  std::string action;
  *words >> operation->number >> operation->asked_us >> operation->client >> action;
  if (action == "acquire") {
    operation->action = Action::kAcquire;
    *words >> operation->flow_id >> operation->count;
  } else if (action == "release" || action == "keep") {
    operation->action = action == "keep" ? Action::kKeep : Action::kRelease;
    *words >> operation->token_id;
  } else {
    BadLine(line);
  }
  if (words->fail()) BadLine(line);
}

void ParseAnswer(std::istringstream* words, const std::string& line, Operation* operation) {
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
  if (operation->outcome == Outcome::kUnknown || words->fail()) BadLine(line);
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

void HistoryWriter::AskAcquire(int64_t number, const std::string& client, int64_t flow_id,
                               int64_t count) {
  Line("ask " + std::to_string(number) + " " + Now() + " " + client + " acquire " +
       std::to_string(flow_id) + " " + std::to_string(count));
}

void HistoryWriter::AskRelease(int64_t number, const std::string& client, uint64_t token_id) {
  Line("ask " + std::to_string(number) + " " + Now() + " " + client + " release " +
       std::to_string(token_id));
}

void HistoryWriter::AskKeep(int64_t number, const std::string& client, uint64_t token_id) {
  Line("ask " + std::to_string(number) + " " + Now() + " " + client + " keep " +
       std::to_string(token_id));
}

void HistoryWriter::AnswerGranted(const Operation& granted) {
  Line("answer " + std::to_string(granted.number) + " " + Now() + " granted " +
       std::to_string(granted.token_id) + " " + std::to_string(granted.fence) + " " +
       std::to_string(granted.now_calls) + " " + std::to_string(granted.level) + " " +
       std::to_string(granted.hold_ms));
}

void HistoryWriter::Answer(int64_t number, Outcome outcome, int64_t hold_ms) {
  std::string line = "answer " + std::to_string(number) + " " + Now() + " " + WordOf(outcome);
  if (outcome == Outcome::kKept) line += " " + std::to_string(hold_ms);
  Line(line);
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
    } else if (kind == "ask") {
      Operation operation;
      ParseAsk(&words, line, &operation);
      open[operation.number] = history->operations.size();
      history->operations.push_back(operation);
    } else if (kind == "answer") {
      int64_t number = 0;
      words >> number;
      const auto asked = open.find(number);
      if (asked == open.end()) BadLine(line);
      ParseAnswer(&words, line, &history->operations[asked->second]);
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
  switch (operation.action) {
    case Action::kAcquire:
      text << " acquire flow " << operation.flow_id << " count " << operation.count;
      break;
    case Action::kRelease: text << " release " << operation.token_id; break;
    case Action::kKeep: text << " keep " << operation.token_id; break;
  }
  text << " -> " << WordOf(operation.outcome);
  if (operation.outcome == Outcome::kGranted) {
    text << " token " << operation.token_id << " fence " << operation.fence << " nowCalls "
         << operation.now_calls << "/" << operation.level;
  }
  if (operation.hold_ms > 0) text << " hold " << operation.hold_ms << " ms";
  if (operation.outcome != Outcome::kUnknown) text << " at " << operation.answered_us;
  return text.str();
}

}  // namespace nowcalls::crash
