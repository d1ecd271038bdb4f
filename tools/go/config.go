package nowcalls

import (
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"log"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	defaultAddress = "127.0.0.1:18730"
	defaultPort    = 18730
	defaultTimeout = 5 * time.Second
	nameBytesMax   = 128
	hostBytesMax   = 253
	timeoutMax     = time.Hour
)

// Fallback says what acquires and requests do when no server is reached, it does not answer in
// time, answers that it failed, or is full (TOO_MANY_REQUEST).
type Fallback string

const (
	// FallbackByRule is FallbackLocal or FallbackPass, as the rule's fallbackToLocalWhenFail says.
	FallbackByRule Fallback = "rule"
	// FallbackLocal admits the rule's count divided by the clients last known to be online.
	FallbackLocal Fallback = "local"
	// FallbackPass admits everything.
	FallbackPass Fallback = "pass"
	// FallbackFail returns the error.
	FallbackFail Fallback = "fail"
)

// Config has the settings of a client. Its zero value is one of the namespace "default" of a server
// on this machine.
type Config struct {
	// Address is "HOST:PORT" or "[IPV6]:PORT", or several with commas between, which are tried in
	// turn, for the same ledger behind several addresses. "": 127.0.0.1:18730.
	Address string
	// Namespace is the application, which has the rules. "": default.
	Namespace string
	// ClientID names the session that holds the tokens. "": the client makes one up.
	ClientID string
	// Timeout is what a call may take besides its wait, connecting anew included. 0: 5 s.
	Timeout time.Duration
	// Keep says whether permits are kept in the background. "": KeepByRule.
	Keep KeepMode
	// Fallback says what calls do without a server. "": FallbackByRule.
	Fallback Fallback
	// LocalLevels are shares by flow, as calls name it, instead of those from the rules. Of a rate:
	// calls of one window.
	LocalLevels map[Flow]int
	// Exclusive: refuse to share the client id with another process that is online.
	Exclusive bool
	// Rejoin: take over the tokens of a process before that had the client id and rejoined, too.
	// Otherwise each process holds its own.
	Rejoin bool
	// TLS is "on": the system's authorities vouch for the server, or those of NOWCALLS_TLS_CA;
	// the path of a PEM file: those in it; "off": plain. "": as NOWCALLS_TLS and the files of
	// NOWCALLS_TLS_CA, NOWCALLS_TLS_CLIENT_CERT and NOWCALLS_TLS_CLIENT_KEY say, else plain.
	TLS string
	// TLSCertificate and TLSKey are PEM files of a certificate to show to the server.
	TLSCertificate, TLSKey string
	// TLSServerName: the server's certificate must have it, in place of the host of the address.
	TLSServerName string
	// TLSConfig is used as it is, in place of TLS and its files.
	TLSConfig *tls.Config
	// Secret shows the server who the client is. It leaves over TLS, or to this machine. None: as
	// NOWCALLS_SECRET_FILE says.
	Secret Secret
	// OnLost is called with each lost permit, one after the other on a goroutine of the client. It
	// gets another Permit of the same token, and must not call Close.
	OnLost func(*Permit)
	// Logger is told when a fallback begins and when a token is lost. nil: log.Default().
	Logger *log.Logger
}

// config is a Config that was checked.
type config struct {
	addresses   []address
	namespace   string
	clientID    string
	timeout     time.Duration
	keep        KeepMode
	fallback    Fallback
	localLevels map[Flow]int
	exclusive   bool
	rejoin      bool
	tls         *tlsFiles // nil: plain.
	secret      Secret
	onLost      func(*Permit)
	logger      *log.Logger
}

// check returns a BadRequest for what no server would take.
func (c Config) check() (*config, error) {
	got := &config{namespace: c.Namespace, clientID: c.ClientID, timeout: c.Timeout, keep: c.Keep,
		fallback: c.Fallback, exclusive: c.Exclusive, rejoin: c.Rejoin, onLost: c.OnLost,
		logger: c.Logger, localLevels: map[Flow]int{}}
	got.setDefaults()
	if err := got.setAddresses(c.Address); err != nil {
		return nil, err
	}
	switch got.fallback {
	case FallbackByRule, FallbackLocal, FallbackPass, FallbackFail:
	default:
		return nil, badRequest(
			"fallback must be one of rule, local, pass, fail, not '%s'", c.Fallback)
	}
	if err := checkKeep(got.keep); err != nil {
		return nil, err
	}
	if err := checkTime("timeout", got.timeout); err != nil {
		return nil, err
	}
	for flow, level := range c.LocalLevels {
		if err := flow.check(); err != nil {
			return nil, badRequest("LocalLevels: %s", err)
		}
		if level < 0 {
			return nil, badRequest("LocalLevels[%s] must be an int from 0 on, not %d", flow, level)
		}
		got.localLevels[flow] = level
	}
	if err := checkName("namespace", got.namespace); err != nil {
		return nil, err
	}
	if err := checkName("ClientID", got.clientID); err != nil {
		return nil, err
	}
	if strings.HasPrefix(got.clientID, "@") {
		return nil, badRequest("ClientID must not begin with @")
	}
	var err error
	if got.tls, err = makeTLS(c); err != nil {
		return nil, err
	}
	got.secret, err = c.Secret.orOfEnvironment()
	return got, err
}

func (c *config) setDefaults() {
	if c.namespace == "" {
		c.namespace = "default"
	}
	if c.clientID == "" {
		c.clientID = "go-" + newUUID()
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.keep == "" {
		c.keep = KeepByRule
	}
	if c.fallback == "" {
		c.fallback = FallbackByRule
	}
	if c.logger == nil {
		c.logger = log.Default()
	}
}

func (c *config) setAddresses(texts string) error {
	if texts == "" {
		texts = defaultAddress
	}
	for _, text := range strings.Split(texts, ",") {
		one, err := parseAddress(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		c.addresses = append(c.addresses, one)
	}
	return nil
}

// parseAddress takes HOST, HOST:PORT or [IPV6]:PORT; without a port it is the default port.
func parseAddress(text string) (address, error) {
	host, port := text, strconv.Itoa(defaultPort)
	if strings.HasPrefix(text, "[") {
		inside, rest, closed := strings.Cut(text[1:], "]")
		host = inside
		if strings.HasPrefix(rest, ":") {
			port = rest[1:]
		} else if rest != "" || !closed {
			port = "none"
		}
	} else if strings.Count(text, ":") == 1 {
		host, port, _ = strings.Cut(text, ":")
	}
	if strings.Contains(host, "/") || (strings.Contains(host, ":") && !isIPv6(host)) {
		return address{}, badRequest(
			"address '%s' is not HOST:PORT or [IPV6]:PORT; it has no http://", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if !isHost(host) || err != nil || number == 0 || strings.HasPrefix(port, "+") {
		return address{}, badRequest("address '%s' is not HOST:PORT or [IPV6]:PORT", text)
	}
	return address{host, int(number)}, nil
}

func isIPv6(host string) bool {
	parsed, err := netip.ParseAddr(host)
	return err == nil && parsed.Is6()
}

// isHost: no resolver finds a name with an empty label, or with one of more than 63 bytes.
func isHost(host string) bool {
	if isIPv6(host) {
		return true
	}
	if len(host) > hostBytesMax || strings.ContainsAny(host, "\x00 ") || !utf8.ValidString(host) {
		return false
	}
	for _, label := range strings.Split(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return true
}

func checkName(what, name string) error {
	if len(name) < 1 || len(name) > nameBytesMax {
		return badRequest("%s must be a text of 1 to %d bytes", what, nameBytesMax)
	}
	if hasControls(name) {
		return badRequest("%s must not have control characters or surrogates", what)
	}
	return nil
}

// hasControls tells also of what is no UTF-8.
func hasControls(text string) bool {
	return !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0
}

func checkKeep(keep KeepMode) error {
	switch keep {
	case KeepByRule, KeepAlways, KeepOff:
		return nil
	}
	return badRequest("keep must be KeepByRule, KeepAlways or KeepOff, not '%s'", keep)
}

func checkTime(what string, value time.Duration) error {
	if value < 0 || value > timeoutMax {
		return badRequest("%s must be 0 to %.0f seconds, not %s", what, timeoutMax.Seconds(), value)
	}
	return nil
}

func newUUID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("nowcalls: no random numbers: " + err.Error())
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
