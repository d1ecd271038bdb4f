# The least client and a real server, which is killed and started again.
require "json"
require "timeout"
require "tmpdir"
require_relative "client"

SERVER = File.join(ENV.fetch("NOWCALLS_BIN_DIR"), "nowcalls-server")

# A server with a ledger of its own, on a port that it keeps.
class Server
  attr_reader :address

  def initialize(dir)
    @dir, @address = dir, "127.0.0.1:0"
    rule = { resource: "checkout", grade: 0, count: 1, clusterMode: true,
             clusterConfig: { flowId: 7, thresholdType: 1, resourceTimeout: 20_000,
                              clientOfflineTime: 20_000 } }
    File.write("#{dir}/rules.json", [rule].to_json)
    start
  end

  def start
    port_file = "#{@dir}/port"
    File.delete(port_file) if File.exist?(port_file)
    @pid = spawn(SERVER, "--listen", @address, "--port-file", port_file,
                 "--data-dir", "#{@dir}/data", "--rules", "default=#{@dir}/rules.json",
                 %i[out err] => ["#{@dir}/log", "a"])
    Timeout.timeout(20) { sleep(0.01) until File.size?(port_file) }
    @address = "127.0.0.1:#{File.read(port_file).strip}"
  rescue StandardError
    kill
    raise
  end

  def kill
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
  end
end

def check(fits, what) = fits || abort("server_test: #{what}")

Dir.mktmpdir("nowcalls-sixth-") do |dir|
  server = Server.new(dir)
  mine = Client.new(server.address, "default", "mine")
  others = Client.new(server.address, "default", "others")

  # A token outlives its server, and its release makes room.
  held = mine.acquire(7)["held"]
  check(held && mine.valid?(held), "no token")
  server.kill
  check(mine.valid?(held), "the token ended with its server")
  server.start
  refused = others.acquire(7)
  check(refused["refused_by"] == "level", "the token was not there: #{refused}")
  released = mine.release(held)
  check(released == { "outcome" => "ok", "lost" => false }, "the release: #{released}")

  # A server dies with a request on its way: it grants one token, or none.
  20.times do
    answers = mine.ask(7)
    server.kill
    server.start
    mine.turn while answers.empty?
    check(answers[0]["outcome"] == "ok", "asked again: #{answers[0]}")
    mine.release(answers[0]["held"])
    mine.settle # Behind the release the attempt that strayed is cancelled.
  end
  granted = others.acquire(7)
  check(granted["outcome"] == "ok", "a token is left: #{granted}")
  others.release(granted["held"])
  puts "server_test: 21 kills, no token left"
ensure
  server&.kill
end
