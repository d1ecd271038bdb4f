// LogLine: writes to the server's log.
//
// Thread: any.
#ifndef NOWCALLS_WEB_LOG_LINE_H_
#define NOWCALLS_WEB_LOG_LINE_H_

#include <functional>
#include <string>

namespace nowcalls::web {

// `problem`: an operator should look.
using LogLine = std::function<void(bool problem, const std::string& line)>;

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_LOG_LINE_H_
