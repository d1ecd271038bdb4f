# Session: the least client that can be relied on. It acquires and releases single tokens, and
# leaves out what tools/manual/client-authors.md allows.
#
# No socket, no thread, no clock: its owner tells it of its connection and of time, in whole
# milliseconds of a clock that counts on in sleep. The owner sends `output`, and takes `lost`.
require "msgpack"

# A token. sent: when its acquire was.
Held = Struct.new(:token, :fence, :flow, :sent, :hold, :offline, :state, :lost, :stray)

# tell: for the answer, once. unsettled: sent, and no answer says whether it was carried out.
# strayed: an attempt of it may still arrive.
Call = Struct.new(:method, :params, :tell, :deadline, :number, :sent, :attempts, :unsettled, :done,
                  :strayed, :id, :flow, :wait_until, :held) do
  def persistent? = %w[release cancel].include?(method)
  def repeatable? = persistent? || (method == "acquire" && !done)
end

class Session
  Wrong = Class.new(StandardError) # The peer does not speak the protocol.
  NEVER = Float::INFINITY
  PAUSE_MS, PAUSE_MS_MAX, SILENCE_MS, ANSWER_BYTES_MAX = 50, 2000, 10_000, 8 << 20
  OUTCOMES = { 1 => "bad_request", 2 => "bad_request", 3 => "bad_request", 4 => "bad_request",
               6 => "bad_request", 9 => "permission_denied" }.freeze # Of errors; else unavailable.

  attr_reader :dial_at, :lost, :output

  # hello: namespace, client id, options. draw(low, high): a pause.
  def initialize(addresses:, hello:, timeout:, request_ids:, draw:, now: 0)
    @addresses, @hello, @timeout, @ids, @draw = addresses, hello, timeout, request_ids, draw
    @state, @dial_at, @index, @failures, @number = :offline, now, 0, 0, 0
    @held, @queue, @in_flight, @awaited, @lost, @output = {}, [], {}, [], [], "".b
    @contact = now # When the last answered request was sent.
  end

  def address = @addresses[@index % @addresses.size]
  def settled? = (@queue + @in_flight.values).none?(&:persistent?)

  # Until then the token is surely the client's; from then on it is lost, whatever arrives.
  def valid_until(held) = [hold_end(held), contact_end(held)].min

  # Calls.

  def acquire(flow, count = 1, wait: nil, hold: nil, param: nil, timeout: nil, now:, &tell)
    call = begin_call("acquire", now + (timeout || @timeout) + (wait || 0), tell)
    call.id, call.flow, call.wait_until = @ids.call, flow, wait && now + wait
    options = { "wait_ms" => wait, "request_id" => call.id, "hold_ms" => hold, "param" => param }
    call.params = [flow, count, options.compact]
    ask(call, now)
  end

  def release(held, outcome = "ok", now:, &tell)
    lose(held, :lapsed, reason(held), now) if held.state == :held && now >= valid_until(held)
    call = begin_call("release", now + @timeout, tell)
    return settle(call, "outcome" => "ok", "lost" => held.lost) if held.state == :ended
    held.state, call.held = :ended, held
    @held.delete(held.token)
    call.params = outcome == "ok" ? [held.token] : [held.token, { "outcome" => outcome }]
    ask(call, now)
    cancel_stray(held, now) # Behind the release: an attempt that comes later would be granted anew.
  end

  # The connection.

  def dial = @dial_at = NEVER

  def connected(now)
    @state, @dial_at, @msgid, @in_flight, @output, @useful = :greeting, NEVER, 0, {}, "".b, false
    @unpacker, @unread, @heard, @pinged, @probed = MessagePack::Unpacker.new, 0, now, now, nil
    @hello_msgid, @hello_at = request("hello", [1, *@hello]), now
  end

  def dial_failed(now)
    @index += 1
    @failures += 1
    rows, within_row = @failures.divmod(@addresses.size)
    bound = [PAUSE_MS << [rows, 6].min, PAUSE_MS_MAX].min
    @dial_at = now + (within_row.zero? ? @draw.call(0, bound) : 0)
  end

  def disconnected(now)
    useful, @state = @state == :ready && @useful, :offline
    calls, @in_flight = @in_flight.values.sort_by(&:number), {}
    calls.each { |call| call.strayed = true }
    @queue += calls.select(&:repeatable?)
    return dial_failed(now) unless useful
    @failures, @dial_at = 0, now + @draw.call(0, PAUSE_MS)
  end

  # Why the connection must end, or nil.
  def received(bytes, now)
    look_after(now) # What comes late brings no token back.
    @heard, @probed = now, nil if @state == :ready
    @unread += bytes.bytesize
    @unpacker.feed_each(bytes) do |message|
      @unread = 0
      refusal = take(message, now) and return refusal
    end
    @unread > ANSWER_BYTES_MAX ? "an answer is too long" : nil
  rescue Wrong, MessagePack::UnpackError => error
    "the peer does not speak nowcalls: #{error.message}"
  end

  # Time. Returns as received.

  def tick(now)
    while (call = @awaited.min_by { |one| [one.deadline, one.number] }) && call.deadline <= now
      give_up(call, now)
    end
    look_after(now)
    return "no answer to hello" if @state == :greeting && now >= @heard + @timeout
    return unless @state == :ready
    return "the server is silent" if now >= silent_at
    ping(now) if now >= ping_at
    nil
  end

  def wakeup
    at = [*@awaited.map(&:deadline), *@held.values.map { |held| valid_until(held) }, NEVER].min
    case @state
    when :offline then [at, @dial_at].min
    when :greeting then [at, @heard + @timeout].min
    else [at, silent_at, ping_at].min
    end
  end

  private

  def begin_call(method, deadline = NEVER, tell = nil, params = [])
    call = Call.new(method, params, tell, deadline, @number += 1, 0, 0)
    @awaited << call if tell
    call
  end

  def ask(call, now) = @state == :ready ? send_call(call, now) : @queue << call
  def cancel(id, now) = ask(begin_call("cancel", NEVER, nil, [id]), now)

  def request(method, params)
    @output << [0, @msgid += 1, method, params].to_msgpack
    @msgid
  end

  def send_call(call, now)
    left = call.wait_until && [call.wait_until - now, 1].max # Without it, it would lose its place.
    params = left ? [*call.params[0, 2], call.params[2].merge("wait_ms" => left)] : call.params
    @in_flight[request(call.method, params)] = call
    call.sent, call.unsettled, call.attempts = now, true, call.attempts + 1
  end

  def ping(now)
    @pinged, @probed = now, @probed || now
    send_call(begin_call("ping"), now)
  end

  def silent_at = @probed ? @probed + @timeout : NEVER

  def ping_at
    at = @probed ? NEVER : @heard + SILENCE_MS
    offline = @held.values.filter_map(&:offline).min or return at
    [at, [@contact, @pinged].max + [offline / 3, 10].max].min
  end

  # Ends of calls.

  def settle(call, answer)
    return if call.done
    call.done = true
    @awaited.delete(call)&.tell&.call(answer)
  end

  def refuse(call, answer, now)
    return if call.done
    cancel(call.id, now) if call.method == "acquire" && call.strayed
    settle(call, answer)
  end

  # Its caller waits no longer: an acquire is cancelled, a release goes on.
  def give_up(call, now)
    @queue.delete(call) unless call.persistent?
    call.strayed ||= call.unsettled
    answer = { "outcome" => call.unsettled ? "unknown" : "unavailable" }
    answer["lost"] = call.held.lost if call.method == "release"
    refuse(call, answer, now)
    ping(now) if @state == :ready && call.unsettled && @heard <= call.sent && !@probed
  end

  # Messages.

  def want(fits, what) = fits || raise(Wrong, what)
  def uint(value) = (want(value.is_a?(Integer) && value >= 0, "#{value.inspect} is no uint"); value)
  def array(value, least) = (want(value.is_a?(Array) && value.size >= least, "too short"); value)

  def take(message, now)
    kind, msgid, error, result = array(message, 3)
    return told(msgid, array(error, 0), now) if kind == 2 && msgid.is_a?(String)
    want(kind == 1 && message.size >= 4, "no answer")
    code = error && uint(array(error, 3)[0])
    return "the server calls a request malformed" if code == 1
    return hello_answered(code, result, now) if msgid == @hello_msgid
    call = want(@in_flight[msgid], "an answer to nothing")
    @contact = [@contact, call.sent].max
    answered(call, code, result, now)
    @in_flight.delete(msgid) # Not one whose answer was wrong: it is asked again.
    call.unsettled, @useful = false, true
    @queue << call if call.method == "acquire" && !call.done # The server ends.
    nil
  end

  def told(what, params, now)
    return unless what == "lost" # Later servers may tell more.
    token, _, reason = array(params, 3)
    @held.key?(uint(token)) && lose(@held[token], :ended, reason, now)
    nil
  end

  def hello_answered(code, result, now)
    @hello_msgid = nil
    return hello_refused(OUTCOMES[code], now) if code
    resumed = uint(array(result, 4)[3])
    @state, @heard, @probed, @contact = :ready, now, nil, [@contact, @hello_at].max
    # Without keeps nobody can tell which tokens are left, so none is relied on.
    state = resumed.zero? ? :ended : :lapsed
    tokens.each { |held| lose(held, state, "", now) } if resumed < @held.size
    calls, @queue = @queue.sort_by(&:number), []
    calls.each { |call| send_call(call, now) }
    nil
  end

  # Another attempt does not help calls that wait now, if the client is at fault.
  def hello_refused(outcome, now)
    calls, @queue = @queue.partition { |call| outcome && !call.persistent? }
    calls.each { |call| refuse(call, { "outcome" => outcome }, now) }
    "hello was refused"
  end

  def answered(call, code, result, now)
    outcome = OUTCOMES.fetch(code, "unavailable") if code
    case call.method
    when "acquire"
      code ? refuse(call, { "outcome" => outcome }, now) : acquire_answered(call, result, now)
    when "release" # After an attempt without an answer, "gone" may be its work.
      call.held.lost ||= !code && uint(array(result, 1)[0]) != 6 && call.attempts == 1
      settle(call, "outcome" => outcome || "ok", "lost" => call.held.lost)
    end
  end

  def acquire_answered(call, result, now)
    status, token, fence, now_calls, level, hold, limit = array(result, 7)
    return if status == 5 || call.done # Of a call that was given up a cancel is on its way.
    numbers = { "now_calls" => uint(now_calls), "level" => uint(level) }
    if want(status.is_a?(Integer), "no status") && status != 0
      answer = { "outcome" => { 3 => "no_rule", -4 => "bad_request" }.fetch(status, "refused") }
      limits = { "flow" => call.flow, "refused_by" => limit }.merge(numbers)
      answer.merge!(limits) if limit && answer["outcome"] == "refused"
      return refuse(call, answer, now)
    end
    want(uint(token).positive? && !@held.key?(token), "a token that cannot be granted")
    offline = result[8] && uint(array(result[8], 3)[2])
    held = Held.new(token, uint(fence), call.flow, call.sent, uint(hold), offline, :held, false,
                    call.strayed ? call.id : nil)
    @held[token] = held
    settle(call, { "outcome" => "ok", "tokens" => [token], "held" => held }.merge(numbers))
  end

  # Tokens.

  def sure(span) = span - span / 100 - 2 # Clocks differ.
  def hold_end(held) = held.sent + sure(held.hold)
  def contact_end(held) = held.offline ? @contact + sure(held.offline) : NEVER
  def reason(held) = hold_end(held) <= contact_end(held) ? "resource_timeout" : "client_offline"
  def tokens = @held.values.sort_by(&:token)

  def look_after(now)
    tokens.each { |held| lose(held, :lapsed, reason(held), now) if now >= valid_until(held) }
  end

  # :lapsed: the server may have it, so its release is sent.
  def lose(held, state, reason, now)
    @held.delete(held.token)
    held.state, held.lost = state, true
    @lost << [held, reason]
    cancel_stray(held, now) if state == :ended
  end

  def cancel_stray(held, now)
    id, held.stray = held.stray, nil
    cancel(id, now) if id
  end
end
