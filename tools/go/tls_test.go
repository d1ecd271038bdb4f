package nowcalls

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TLS, and who the client is, with certificates of openssl(1).

// authority is a CA in a directory of its own. Files are PEM.
type authority struct {
	*testing.T
	dir, file string
	issued    int
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	a := &authority{T: t, dir: t.TempDir()}
	a.file = a.path("ca.pem")
	key := a.newKey("ca")
	a.run("req", "-x509", "-key", key, "-out", a.file, "-days", "9", "-subj", "/CN=Test CA")
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) run(arguments ...string) {
	a.Helper()
	if said, err := exec.Command("openssl", arguments...).CombinedOutput(); err != nil {
		a.Fatalf("openssl %v: %s", arguments, said)
	}
}

func (a *authority) newKey(stem string) string {
	a.Helper()
	key := a.path(stem + ".key")
	a.run("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
	return key
}

// issue: names are subjectAltName, like "DNS:a.test,IP:127.0.0.1".
func (a *authority) issue(names string, days int) (certificate, key string) {
	a.Helper()
	a.issued++
	stem := fmt.Sprint("leaf-", a.issued)
	key, certificate = a.newKey(stem), a.path(stem+".pem")
	request, extensions := a.path(stem+".csr"), a.path(stem+".ext")
	check(a.T, os.WriteFile(extensions, []byte("subjectAltName="+names+"\n"), 0o600))
	// A common name counts for nothing.
	a.run("req", "-new", "-key", key, "-out", request, "-subj", "/CN=common.test")
	a.run("x509", "-req", "-in", request, "-out", certificate,
		"-days", fmt.Sprint(days), "-CA", a.file, "-CAkey", a.path("ca.key"),
		"-CAcreateserial", "-extfile", extensions)
	return certificate, key
}

// scripted is a server with a certificate for these names. clients: whose certificates it asks for.
func (a *authority) scripted(names string, days int, clients *authority, asked *int64) *scripted {
	a.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(names, days))
	check(a.T, err)
	settings := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{alpn}}
	if clients != nil {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(clients.file)
		check(a.T, err)
		pool.AppendCertsFromPEM(pem)
		settings.ClientAuth, settings.ClientCAs = tls.RequireAndVerifyClientCert, pool
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(a.T, err)
	return serveScripted(a.T, tls.NewListener(listener, settings),
		func(peer net.Conn, msgid any, method string, _ []any) {
			atomic.AddInt64(asked, 1)
			send(peer, 1, msgid, nil, honest(method))
		})
}

// local are settings with which an acquire ends when all addresses have failed.
func local(address string, settings Config) Config {
	settings.Address = address
	if settings.Fallback == "" {
		settings.Fallback = FallbackLocal
	}
	settings.Timeout = patience
	return settings
}

func TestTheServersCertificateMustBeTheRightOne(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	var asked int64
	right := ca.scripted("IP:127.0.0.1", 9, nil, &asked)
	named := ca.scripted("DNS:a.test,IP:127.0.0.2", 9, nil, &asked)
	expired := ca.scripted("IP:127.0.0.1", -1, nil, &asked)
	nobody := ca.scripted("URI:spiffe://prod/tokens", 9, nil, &asked)
	plain := newScripted(t, nothing)
	localhost := strings.Replace(named.address, "127.0.0.1", "localhost", 1)
	for _, one := range []struct {
		address  string
		settings Config
		words    string
	}{
		{right.address, Config{TLS: other.file, Secret: SecretText(secretWords)},
			"its certificate is not believed: certificate signed by unknown authority"},
		{right.address, Config{TLS: "on"}, "its certificate is not believed: "},
		{named.address, Config{TLS: ca.file}, "its certificate is not believed: certificate is valid " +
			"for 127.0.0.2, not 127.0.0.1"},
		{localhost, Config{TLS: ca.file}, "its certificate is not believed: certificate is valid for"},
		{expired.address, Config{TLS: ca.file}, "certificate has expired"},
		{nobody.address, Config{TLS: ca.file, TLSServerName: "common.test"}, "is not believed"},
		{plain.address, Config{TLS: ca.file, Timeout: time.Second}, "does it speak TLS?"},
	} {
		client := newClient(t, local(one.address, one.settings))
		_, err := client.Acquire(background, ID(1))
		as[*Unavailable](t, err)
		contains(t, err, one.address+": ")
		contains(t, err, one.words)
	}
	equal(t, "asked", atomic.LoadInt64(&asked), int64(0))
	for _, one := range []Config{{Address: right.address}, {Address: named.address,
		TLSServerName: "a.test"}, {Address: named.address, TLSServerName: "a.test."}} {
		one.TLS = ca.file
		client := newClient(t, one)
		_, err := client.Ping(background)
		check(t, err)
	}
}

func TestAConfigOfTheProgramIsUsedAsItIs(t *testing.T) {
	ca := newAuthority(t)
	var asked int64
	server := ca.scripted("DNS:a.test", 9, nil, &asked)
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(ca.file)
	check(t, err)
	pool.AppendCertsFromPEM(pem)
	own := &tls.Config{RootCAs: pool, ServerName: "a.test"}
	_, err = newClient(t, Config{Address: server.address, TLSConfig: own}).Ping(background)
	check(t, err)
	client := newClient(t, local(server.address, Config{TLSConfig: own, TLSServerName: "b.test"}))
	contains(t, acquireError(client, ID(1)), "its certificate is not believed")
}

func TestAServerThatAsksForACertificateGetsThatOfTheClient(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	var asked int64
	server := ca.scripted("IP:127.0.0.1", 9, ca, &asked)
	certificate, key := ca.issue("URI:spiffe://prod/checkout", 9)
	settings := Config{TLS: ca.file, TLSCertificate: certificate, TLSKey: key}
	settings.Address = server.address
	_, err := newClient(t, settings).Ping(background)
	check(t, err)
	// Who is not let in gets no call past it.
	denied := local(server.address, Config{TLS: ca.file, Fallback: FallbackPass})
	err = acquireError(newClient(t, denied), ID(1))
	as[*PermissionDenied](t, err)
	contains(t, err, server.address+": it refuses the client's certificate") // As Go's servers say it.
	denied.TLSCertificate, denied.TLSKey = other.issue("URI:spiffe://prod/checkout", 9)
	err = acquireError(newClient(t, denied), ID(1))
	as[*PermissionDenied](t, err)
	contains(t, err, "it refuses the client's certificate")
	_, err = New(Config{TLS: ca.file, TLSCertificate: certificate, TLSKey: denied.TLSKey})
	contains(t, err, fmt.Sprintf("%s is not the key of %s", denied.TLSKey, certificate))
}

func TestKeysThatCannotBeUsedAreRefusedAtOnce(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("DNS:a.test", 9)
	locked := ca.path("locked.key")
	ca.run("pkey", "-in", key, "-out", locked, "-aes256", "-passout", "pass:secret")
	_, err := New(Config{TLSCertificate: certificate, TLSKey: locked})
	contains(t, err, locked+" has a passphrase; give a key without one")
	_, err = New(Config{TLSCertificate: key, TLSKey: key})
	contains(t, err, "are no PEM files of a certificate and its key: ")
}

func TestTheEnvironmentSaysWhatSettingsDoNot(t *testing.T) {
	ca := newAuthority(t)
	var asked int64
	server := ca.scripted("IP:127.0.0.1", 9, ca, &asked)
	certificate, key := ca.issue("DNS:client.test", 9)
	t.Setenv("NOWCALLS_TLS_CA", ca.file)
	t.Setenv("NOWCALLS_TLS_CLIENT_CERT", certificate)
	t.Setenv("NOWCALLS_TLS_CLIENT_KEY", key)
	_, err := newClient(t, Config{Address: server.address}).Ping(background)
	check(t, err)
	for says, expected := range map[string]bool{"on": true, "off": false, "": true} {
		t.Setenv("NOWCALLS_TLS", says)
		checked, err := Config{}.check()
		check(t, err)
		equal(t, says, checked.tls != nil, expected)
	}
	t.Setenv("NOWCALLS_TLS", "yes")
	_, err = New(Config{})
	contains(t, err, "NOWCALLS_TLS: 'yes' is neither on nor off")
}

func TestFilesThatWereRenewedAreUsedByTheNextDial(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	var asked int64
	server := ca.scripted("IP:127.0.0.1", 9, nil, &asked)
	file := ca.path("renewed.pem")
	copyFile := func(from string) {
		data, err := os.ReadFile(from)
		check(t, err)
		check(t, os.WriteFile(file, data, 0o600))
	}
	copyFile(other.file)
	client := newClient(t, local(server.address, Config{TLS: file}))
	contains(t, acquireError(client, ID(1)), "not believed")
	copyFile(ca.file)
	_, err := client.Ping(background)
	check(t, err)
}

// Against a real server.

func accessFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.toml")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestARealServerLetsInWhomItsAccessFileNames(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.issue("IP:127.0.0.1", 9)
	digest := sha256.Sum256([]byte(secretWords))
	access := accessFile(t, fmt.Sprintf(`
[[principal]]
name = "operators"
role = "administrator"
certificates = ["ops.test"]

[[principal]]
name = "checkout"
role = "client"
namespaces = ["mine"]
secret_sha256 = ["%s"]
`, hex.EncodeToString(digest[:])))
	rules := filepath.Join(t.TempDir(), "rules.json")
	check(t, os.WriteFile(rules, []byte(`[{"resource": "r", "grade": 0, "count": 1,
		"clusterMode": true,
		"clusterConfig": {"flowId": 1, "thresholdType": 1, "resourceTimeout": 30000}}]`), 0o600))
	s, err := newServer("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ca.file,
		"--tls-client", "optional", "--plain", "off", "--access", access, "--rules", "mine="+rules)
	check(t, err)
	t.Cleanup(s.remove)
	settings := Config{Address: s.address, TLS: ca.file, Namespace: "mine", Fallback: FallbackPass}
	settings.Secret = SecretText(secretWords)
	client := newClient(t, settings)
	equal(t, "released", release(t, acquire(t, client, ID(1))), true)
	settings.Namespace = "other"
	err = acquireError(newClient(t, settings), ID(1))
	as[*PermissionDenied](t, err)
	settings.Namespace, settings.Secret = "mine", SecretText("wrong")
	err = acquireError(newClient(t, settings), ID(1))
	as[*PermissionDenied](t, err)
	contains(t, err, "identify refused: PERMISSION: ")
	settings.Secret = Secret{}
	err = acquireError(newClient(t, settings), ID(1))
	as[*PermissionDenied](t, err)
	settings.TLSCertificate, settings.TLSKey = ca.issue("DNS:ops.test", 9)
	check(t, acquireError(newClient(t, settings), ID(1)))
	plain := newClient(t, Config{Address: s.address, Timeout: time.Second})
	_, err = plain.Ping(background)
	as[*Unavailable](t, err)
	contains(t, err, "before hello was answered; is that a nowcalls-server? the token port of a "+
		"nowcalls-server is usually 18730; or does it speak TLS only?")
}

func TestARealServerThatAsksForACertificateSaysSo(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	certificate, key := ca.issue("IP:127.0.0.1", 9)
	s, err := newServer("--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", ca.file,
		"--tls-client", "required")
	check(t, err)
	t.Cleanup(s.remove)
	settings := local(s.address, Config{TLS: ca.file, Fallback: FallbackPass})
	err = acquireError(newClient(t, settings), ID(1))
	as[*PermissionDenied](t, err)
	contains(t, err, "it asks for a client certificate, and none was shown; set TLSCertificate")
	settings.TLSCertificate, settings.TLSKey = other.issue("DNS:a.test", 9)
	err = acquireError(newClient(t, settings), ID(1))
	as[*PermissionDenied](t, err)
	settings.TLSCertificate, settings.TLSKey = ca.issue("DNS:a.test", 9)
	_, err = newClient(t, settings).Ping(background)
	check(t, err)
}
