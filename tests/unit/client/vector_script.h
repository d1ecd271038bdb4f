// VectorScript: a session's life, event by event, as a vector that sessions of other languages
// play.
//
// A step is what the session's owner does (data/golden/sessions/README.md). Behind it stands what
// came of it: the bytes for the server, what callers are told, what is lost, and until when which
// permit is valid. The answers of the server are the script's.
//
// Thread: one at a time.
#ifndef NOWCALLS_UNIT_CLIENT_VECTOR_SCRIPT_H_
#define NOWCALLS_UNIT_CLIENT_VECTOR_SCRIPT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/session.h"
#include "support/json.h"
#include "support/rpc_client.h"

namespace nowcalls::client {
using testing::Json;

class VectorScript {
 public:
  VectorScript(std::string name, ClientOptions options, uint64_t instance);

  // When the next steps happen.
  void At(int64_t ms) { moment_.now_ms = ms; }
  void Elapse(int64_t ms) { moment_.now_ms += ms; }

  // The connection.
  void DialDue();  // The owner begins to dial when the session wants it.
  void Connected();
  void DialFailed();
  void Disconnected();
  // The server lets the client's certificate not in. DialFailed follows.
  void Denied();
  // Says hello's answer, too.
  void Connect(uint64_t resumed_tokens = 0);
  // To the oldest request of this method that has none.
  void Answer(std::string_view method, const Json& result);
  void Refuse(std::string_view method, int code, const char* name);
  void Lost(uint64_t token, const char* reason);
  // The same answer as a message, for Receive.
  Json AnswerTo(std::string_view method, const Json& result, const Json& error = nullptr);
  // The requests without an answer: method and msgid.
  struct Asked {
    std::string method;
    Json msgid;
    Json items;  // Of acquire_all.
  };
  const std::vector<Asked>& asked() const { return asked_; }
  // The answer to one of them, for Receive.
  Json AnswerAt(size_t index, const Json& result, const Json& error = nullptr);
  // Messages that come at once.
  void Receive(const std::vector<Json>& messages);
  // `shows`: the messages in them; null: there is no whole one.
  void ReceiveBytes(const std::string& bytes, Json shows = nullptr);
  void Tick();
  // When the session wants it.
  void TickDue();
  // The session has drawn the time until it wants to be told: the step before says so.
  void HasDrawnPause();

  // Calls, under names.
  void Acquire(const std::string& call, const AcquireOptions& options = {},
               FlowId flow = FlowId(1001));
  void AcquireAll(const std::string& call, const std::vector<FlowDemand>& demands,
                  const AcquireOptions& options = {});
  void Request(const std::string& call, const RequestOptions& options = {},
               FlowId flow = FlowId(5001));
  void RequestParam(const std::string& call, const std::vector<Value>& values,
                    const RequestOptions& options = {}, FlowId flow = FlowId(4002));
  void Release(const std::string& permit, CallOutcome outcome = CallOutcome::kOk);
  void Keep(const std::string& permit);
  void Close();

  const std::string& name() const { return name_; }
  const ClientSession& session() const { return session_; }
  // Behind the last step.
  struct Moment {
    int64_t now_ms = 0;
    bool connected = false;
    bool hangs_up = false;
    int64_t dials_at_ms = 0;
  };
  const Moment& moment() const { return moment_; }
  // Of calls that were granted; `held`: those that the session holds on the server.
  std::vector<std::string> permits(bool held) const;
  // The vector as text, a line for each step.
  std::string Text() const;

 private:
  Json Step(const char* what) const;
  void Ask(const std::string& call, Json step, const std::shared_ptr<AcquireCall>& acquire);
  void Ask(const std::string& call, Json step, const std::shared_ptr<RateCall>& rate);
  // Adds the step, with what has come of it.
  void Done(Json step);
  void CollectSent(Json* step);
  void CollectValidity(Json* step);
  void CollectDialing(Json* step);
  void Tell(const std::string& call, const nowcalls::Answer& answer, Json told);
  std::string NameOf(const HeldPtr& held) const;

  const std::string name_;
  const ClientOptions options_;
  const uint64_t instance_;
  ClientSession session_;
  Moment moment_;
  bool closed_ = false;  // And the end of its releases is not told yet.
  std::string dials_;    // The address, as last noted.
  std::vector<Asked> asked_;
  std::map<std::string, HeldPtr> permits_;
  std::map<std::string, int64_t> valid_until_;  // As last noted.
  Json answers_ = Json::array();                // Of the step that goes on.
  Json request_ids_ = Json::array();
  std::vector<Json> steps_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_UNIT_CLIENT_VECTOR_SCRIPT_H_
