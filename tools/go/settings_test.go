package nowcalls

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Settings and arguments that are wrong, and secrets that nobody sees.

const secretWords = "nc-0123456789abcdef"

func TestWrongSettingsAreRefusedInWords(t *testing.T) {
	for _, one := range []struct {
		words    string
		settings Config
	}{
		{"address 'http://x:1' is not HOST:PORT or [IPV6]:PORT; it has no http://",
			Config{Address: "http://x:1"}},
		{"address 'a:0' is not HOST:PORT", Config{Address: "a:0"}},
		{"address 'a:65536' is not HOST:PORT", Config{Address: "a:65536"}},
		{"address 'a:x' is not HOST:PORT", Config{Address: "a:x"}},
		{"address '' is not HOST:PORT", Config{Address: "a:1,"}},
		{"address ':1' is not HOST:PORT", Config{Address: ":1"}},
		{"address 'a..b:1' is not", Config{Address: "a..b:1"}},
		{"address '[::1' is not", Config{Address: "[::1"}},
		{"address '[x:y]:1' is not", Config{Address: "[x:y]:1"}},
		{"address '[::1]x' is not", Config{Address: "[::1]x"}},
		{"fallback must be one of rule, local, pass, fail, not 'none'", Config{Fallback: "none"}},
		{"keep must be KeepByRule, KeepAlways or KeepOff, not 'yes'", Config{Keep: "yes"}},
		{"timeout must be 0 to 3600 seconds, not -1s", Config{Timeout: -time.Second}},
		{"timeout must be 0 to 3600 seconds, not 2h0m0s", Config{Timeout: 2 * time.Hour}},
		{"LocalLevels[1] must be an int from 0 on, not -1",
			Config{LocalLevels: map[Flow]int{ID(1): -1}}},
		{"LocalLevels: flow_id must be 1 to", Config{LocalLevels: map[Flow]int{ID(-1): 1}}},
		{"namespace must be a text of 1 to 128 bytes", Config{Namespace: strings.Repeat("x", 129)}},
		{"namespace must not have control characters", Config{Namespace: "a\nb"}},
		{"ClientID must not have control characters or surrogates", Config{ClientID: "\xff"}},
		{"ClientID must not begin with @", Config{ClientID: "@me"}},
		{"TLSCertificate is set, but TLS is off", Config{TLS: "off", TLSCertificate: "x"}},
		{"TLSServerName is set, but TLS is off", Config{TLS: "off", TLSServerName: "x"}},
		{"TLSServerName must be a host's name or address, not 'a..b'", Config{TLSServerName: "a..b"}},
		{"TLSCertificate or NOWCALLS_TLS_CLIENT_CERT is set without TLSKey",
			Config{TLSCertificate: "x"}},
		{"TLSKey or NOWCALLS_TLS_CLIENT_KEY is set without TLSCert", Config{TLSKey: "x"}},
		{"TLS: cannot read /nowhere: no such file", Config{TLS: "/nowhere"}},
		{"TLS: /dev/null is no PEM file of certificates", Config{TLS: "/dev/null"}},
		{"cannot read /nowhere or /nothing: no such file", Config{TLSCertificate: "/nowhere",
			TLSKey: "/nothing"}},
		{"TLSConfig must have what TLS and its files say", Config{TLS: "on", TLSConfig: &tls.Config{}}},
		{"secret must have 1 to 256 bytes", Config{Secret: SecretText("")}},
		{"secret must not have control characters", Config{Secret: SecretText("a\n")}},
		{"secret must be a function, not nil", Config{Secret: SecretFrom(nil)}},
	} {
		client, err := New(one.settings)
		if err == nil {
			client.Close()
		}
		var wrong *BadRequest
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), one.words) {
			t.Errorf("%v, not %q", err, one.words)
		}
	}
}

func TestAddressesAreReadAsTheyAreWritten(t *testing.T) {
	for text, expected := range map[string]string{
		"": "127.0.0.1:18730", "a": "a:18730", "a.test.:5": "a.test.:5", "[::1]:7": "::1:7",
		"::1": "::1:18730", "[fe80::1%eth0]:9": "fe80::1%eth0:9", "a:1, b:2": "a:1 b:2",
	} {
		checked, err := Config{Address: text}.check()
		check(t, err)
		var names []string
		for _, one := range checked.addresses {
			names = append(names, one.String())
		}
		equal(t, text, strings.Join(names, " "), expected)
	}
}

func TestWrongArgumentsAreRefusedInWords(t *testing.T) {
	client := newClient(t, Config{Address: "127.0.0.1:1"})
	_, group := client.AcquireAll(background, make([]Item, 65))
	_, zero := client.Acquire(background, Flow{})
	_, values := client.RequestParam(background, ID(1), []any{"x", []byte("y")})
	for _, one := range []struct {
		words string
		err   error
	}{
		{"acquire_all takes 1 to 64 items, not 65", group},
		{"flow must be ID(1 to 2^63-1), or Name(1 to 1024 bytes)", zero},
		{"a value must be an int, float, bool or str, not []uint8", values},
		{"count must be 1 to 2147483647, not 0", acquireError(client, ID(1), Count(0))},
		{"count must be 1 to 2147483647, not -1", acquireError(client, ID(1), Count(-1))},
		{"flow_id must be 1 to 9223372036854775807, not -1", acquireError(client, ID(-1))},
		{"flow_id must be 1 to 1024 bytes, not 1025",
			acquireError(client, Name(strings.Repeat("x", 1025)))},
		{"flow_id must be UTF-8", acquireError(client, Name("\xff"))},
		{"wait must be 0 to 3600 seconds, not -1ns", acquireError(client, ID(1), Wait(-1))},
		{"timeout must be 0 to 3600 seconds", acquireError(client, ID(1), Timeout(-1))},
		{"param must be an int, float, bool or str, not []uint8",
			acquireError(client, ID(1), Param([]byte{1}))},
		{"param must not be NaN", acquireError(client, ID(1), Param(nan()))},
		{"param must be UTF-8", acquireError(client, ID(1), Param("\xff"))},
		{"keep must be KeepByRule", acquireError(client, ID(1), Keep("x"))},
		{"Acquire takes no option NoSleep", acquireError(client, ID(1), NoSleep())},
	} {
		as[*BadRequest](t, one.err)
		contains(t, one.err, one.words)
	}
	passing := newClient(t, Config{Address: "127.0.0.1:1", Fallback: FallbackPass})
	permit := acquire(t, passing, ID(1))
	_, err := permit.Release(background, "lost")
	contains(t, err, "outcome must be one of ok, failed, timeout, not 'lost'")
	equal(t, "released", release(t, permit), true)
	_, err = acquire(t, passing, ID(1), Param(strings.Repeat("x", 70_000))).Release(background)
	check(t, err)
	_, err = (*Permit)(nil).Release(background)
	check(t, err)
}

func acquireError(client *Client, flow Flow, opts ...Option) error {
	_, err := client.Acquire(background, flow, opts...)
	return err
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestARequestThatIsTooLongFailsAloneAndTheClientGoesOn(t *testing.T) {
	s := onServer(t)
	flow, client := s.load(1, nil), s.client(Config{})
	_, err := client.RequestParam(background, flow, []any{strings.Repeat("x", 70_000)})
	contains(t, err, "request_param: 70")
	contains(t, err, "bytes are too many")
	check(t, acquireError(client, flow))
}

func TestSentinelsTextOfAValue(t *testing.T) {
	for expected, value := range map[string]any{
		"key": "key", "7": int64(7), "true": true, "1.0": 1.0, "0.1": 0.1, "1e+300": 1e300,
		"18446744073709551615": uint64(1<<64 - 1), "-2.5": float32(-2.5),
	} {
		equal(t, "text", textOf(value), expected)
	}
}

// Secrets.

func secretFile(t *testing.T, data string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(path, []byte(data), 0o600))
	check(t, os.Chmod(path, mode))
	return path
}

func TestTheFirstLineOfAFileThatIsItsOwnersAloneIsTheSecret(t *testing.T) {
	for _, data := range []string{"s3cret", "s3cret\n", "s3cret\r\n", "s3cret\nnot this\n"} {
		t.Setenv("NOWCALLS_SECRET_FILE", secretFile(t, data, 0o400))
		secret, err := Secret{}.orOfEnvironment()
		check(t, err)
		text, err := secret.read()
		check(t, err)
		equal(t, "secret", text, "s3cret")
		own, err := SecretText("own").orOfEnvironment()
		check(t, err)
		text, _ = own.read()
		equal(t, "secret", text, "own")
	}
	long := strings.Repeat(secretWords, 20)
	for words, path := range map[string]string{
		"run: chmod 600":                secretFile(t, secretWords, 0o650),
		"others than its owner":         secretFile(t, secretWords, 0o604),
		"no secret in its first line":   secretFile(t, "\n"+secretWords, 0o600),
		"more than 4096 bytes":          secretFile(t, strings.Repeat(long, 20), 0o600),
		"must have 1 to 256 bytes":      secretFile(t, long, 0o600),
		"must not have control":         secretFile(t, secretWords+"\t\n", 0o600),
		"cannot read /nowhere: no such": "/nowhere",
	} {
		t.Setenv("NOWCALLS_SECRET_FILE", path)
		_, err := New(Config{})
		contains(t, err, "NOWCALLS_SECRET_FILE: ")
		contains(t, err, words)
		if strings.Contains(err.Error(), secretWords) {
			t.Errorf("it tells the secret: %v", err)
		}
	}
}

func TestAFileOfRootMayBeForAGroupOfTheProcess(t *testing.T) {
	for _, one := range []struct {
		mode         fs.FileMode
		owner, group uint32
		expected     bool
	}{
		{0o440, 0, 5, true}, {0o640, 0, 5, true}, {0o400, 7, 7, true}, {0o440, 7, 5, false},
		{0o440, 0, 6, false}, {0o660, 0, 5, false}, {0o444, 0, 5, false}, {0o450, 0, 5, false},
	} {
		equal(t, fmt.Sprint(one), isPrivateMode(one.mode, one.owner, one.group, []int{5}), one.expected)
	}
}

func TestNoTextHasTheSecret(t *testing.T) {
	settings := Config{Secret: SecretText(secretWords)}
	checked, err := settings.check()
	check(t, err)
	s := newTestSession(t, settings)
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, value := range []any{settings, settings.Secret, checked, *checked, s.config} {
			if text := fmt.Sprintf(format, value); strings.Contains(text, secretWords) {
				t.Errorf("%s of %T: %s", format, value, text)
			}
		}
	}
}

func TestASecretFunctionThatFailsTellsNothingOfIt(t *testing.T) {
	for words, source := range map[string]func() (string, error){
		"its function panicked": func() (string, error) { panic(secretWords) },
		"its function failed":   func() (string, error) { return "", errors.New(secretWords) },
		"returned what is no secret: it must have 1 to 256 bytes": func() (string, error) {
			return strings.Repeat(secretWords, 20), nil
		},
		"control characters": func() (string, error) { return secretWords + "\n", nil },
	} {
		_, err := SecretFrom(source).read()
		contains(t, err, "secret: ")
		contains(t, err, words)
		if strings.Contains(err.Error(), secretWords) {
			t.Errorf("it tells the secret: %v", err)
		}
	}
}

func TestASecretFunctionMayCallTheClientAndIsAskedForEachConnection(t *testing.T) {
	peer := newScripted(t, func(peer net.Conn, msgid any, method string, params []any) {
		if method == "identify" {
			send(peer, 1, msgid, nil, []any{params[0], "client", "secret", nil})
			return
		}
		send(peer, 1, msgid, nil, honest(method))
	})
	var client *Client
	made, told := make(chan struct{}), make(chan string, 9)
	client = newClient(t, Config{Address: peer.address, Secret: SecretFrom(func() (string, error) {
		<-made
		told <- client.Stats().Address
		return secretWords, nil
	})})
	close(made)
	for i := 1; i <= 2; i++ {
		_, err := client.Ping(background, Timeout(patience))
		check(t, err)
		equal(t, "told", <-told, peer.address)
		peer.cut()
		soon(t, "it broke", func() bool { return client.Stats().Disconnects == uint64(i) })
	}
}

type ends struct {
	net.Conn
	peer, own string
}

func (e ends) RemoteAddr() net.Addr { return tcpAddr(e.peer) }
func (e ends) LocalAddr() net.Addr  { return tcpAddr(e.own) }

func tcpAddr(text string) net.Addr {
	addr, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(text, "1"))
	if err != nil {
		return &net.UnixAddr{}
	}
	return addr
}

func TestLoopbackAndTheOwnAddressesAreThisMachine(t *testing.T) {
	for peer, expected := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "10.0.0.1": true,
		"10.0.0.2": false, "2001:db8::2": false, "128.0.0.1": false, "0.0.0.0": false, "": false,
	} {
		equal(t, peer, staysHere(ends{peer: peer, own: "10.0.0.1"}), expected)
	}
}
