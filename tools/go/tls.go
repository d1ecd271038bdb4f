package nowcalls

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

const (
	alpn            = "nowcalls/1"
	certificateName = "TLSCertificate or NOWCALLS_TLS_CLIENT_CERT" // Setting and variable.
	keyName         = "TLSKey or NOWCALLS_TLS_CLIENT_KEY"

	tlsVariable         = "NOWCALLS_TLS"
	caVariable          = "NOWCALLS_TLS_CA"
	certificateVariable = "NOWCALLS_TLS_CLIENT_CERT"
	keyVariable         = "NOWCALLS_TLS_CLIENT_KEY"

	refusedCertificate = "it refuses the client's certificate"
)

// What a server says of the handshake, by the text of Go's alerts, and whether it is about what the
// client shows. Before TLS 1.3 a server that misses a certificate says "handshake failure", which
// may mean anything.
var alerts = []struct {
	text, means string
	denies      bool
}{
	{"certificate required", "it asks for a client certificate, and none was shown; set " +
		"TLSCertificate and TLSKey", true},
	{"alert(116)", "it asks for a client certificate, and none was shown; set " +
		"TLSCertificate and TLSKey", true},
	{"unknown certificate authority",
		refusedCertificate + ": it does not know the CA that signed it", true},
	{"expired certificate", refusedCertificate + ": it has expired", true},
	{"bad certificate", refusedCertificate, true},
	{"revoked certificate", refusedCertificate + ": it was revoked", true},
	{"access denied", refusedCertificate, true},
	{"unknown certificate", refusedCertificate, true},
	{"unsupported certificate", refusedCertificate, true},
	{"handshake failure", "it refuses the handshake: no cipher suite in common, or it asks for a " +
		"client certificate", false},
	{"protocol version not supported",
		"it speaks other versions of TLS; 1.2 and 1.3 are spoken here", false},
	{"no application protocol",
		"it asks for another application protocol (ALPN) than " + alpn, false},
}

// tlsFiles says how a client makes sure of its server.
type tlsFiles struct {
	ca               string // "" for the system's.
	certificate, key string
	serverName       string
	own              *tls.Config // The program's, used as it is.
}

// config is for the next dial: files are read anew, since they may have been renewed.
func (t *tlsFiles) config(host string) (*tls.Config, error) {
	name := t.serverName
	if name == "" {
		name, _, _ = strings.Cut(host, "%") // fe80::1%eth0.
	}
	name = strings.TrimSuffix(name, ".")
	if t.own != nil {
		own := t.own.Clone()
		if t.serverName != "" || own.ServerName == "" {
			own.ServerName = name
		}
		return own, nil
	}
	made := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, NextProtos: []string{alpn}}
	if t.ca != "" {
		data, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, badRequest("TLS: cannot read %s: %s", t.ca, reasonOf(err))
		}
		made.RootCAs = x509.NewCertPool()
		if !made.RootCAs.AppendCertsFromPEM(data) {
			return nil, badRequest("TLS: %s is no PEM file of certificates", t.ca)
		}
	}
	if t.certificate != "" {
		pair, err := loadPair(t.certificate, t.key)
		if err != nil {
			return nil, err
		}
		// Shown whatever authorities the server names: it may know the certificate otherwise.
		made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
	}
	return made, nil
}

func loadPair(certificate, key string) (tls.Certificate, error) {
	shown, err := os.ReadFile(certificate)
	private, keyErr := os.ReadFile(key)
	if err == nil {
		err = keyErr
	}
	if err != nil {
		return tls.Certificate{}, badRequest("%s: cannot read %s or %s: %s",
			certificateName, certificate, key, reasonOf(err))
	}
	if isEncrypted(private) {
		return tls.Certificate{}, badRequest("%s: %s has a passphrase; give a key without one",
			keyName, key)
	}
	pair, err := tls.X509KeyPair(shown, private)
	if err != nil && strings.Contains(err.Error(), "does not match") {
		return pair, badRequest("%s: %s is not the key of %s", keyName, key, certificate)
	}
	if err != nil {
		return pair, badRequest("%s: %s and %s are no PEM files of a certificate and its key: %s",
			certificateName, certificate, key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	return pair, nil
}

func isEncrypted(key []byte) bool {
	block, _ := pem.Decode(key)
	return block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" ||
		strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"))
}

// makeTLS is from settings, and the environment where they say nothing. nil: plain.
func makeTLS(c Config) (*tlsFiles, error) {
	given := ""
	for _, one := range [][2]string{{"TLSServerName", c.TLSServerName}, {"TLSKey", c.TLSKey},
		{"TLSCertificate", c.TLSCertificate}} {
		if one[1] != "" {
			given = one[0]
		}
	}
	if name := c.TLSServerName; name != "" && (!isHost(name) || strings.HasPrefix(name, ".")) {
		return nil, badRequest(
			"TLSServerName must be a host's name or address, not '%.300s'", name)
	}
	if c.TLSConfig != nil {
		if c.TLS != "" || c.TLSCertificate != "" || c.TLSKey != "" {
			return nil, badRequest("TLSConfig must have what TLS and its files say itself")
		}
		return &tlsFiles{serverName: c.TLSServerName, own: c.TLSConfig}, nil
	}
	if c.TLS == "off" {
		if given != "" {
			return nil, badRequest("%s is set, but TLS is off", given)
		}
		return nil, nil
	}
	byEnvironment, err := environmentHasTLS()
	if c.TLS == "" && given == "" && (err != nil || !byEnvironment) {
		return nil, err
	}
	made := &tlsFiles{ca: c.TLS, certificate: c.TLSCertificate, key: c.TLSKey,
		serverName: c.TLSServerName}
	if c.TLS == "" || c.TLS == "on" {
		made.ca = os.Getenv(caVariable)
	}
	if made.certificate == "" {
		made.certificate = os.Getenv(certificateVariable)
	}
	if made.key == "" {
		made.key = os.Getenv(keyVariable)
	}
	if made.certificate != "" && made.key == "" {
		return nil, badRequest("%s is set without %s; give both, or none", certificateName, keyName)
	}
	if made.certificate == "" && made.key != "" {
		return nil, badRequest("%s is set without %s; give both, or none", keyName, certificateName)
	}
	_, err = made.config("")
	return made, err
}

func environmentHasTLS() (bool, error) {
	switch says := os.Getenv(tlsVariable); says {
	case "on":
		return true, nil
	case "off":
		return false, nil
	case "":
		files := os.Getenv(caVariable) + os.Getenv(certificateVariable) + os.Getenv(keyVariable)
		return files != "", nil
	default:
		return false, badRequest("%s: '%s' is neither on nor off", tlsVariable, says)
	}
}

// alertOf is what the server said of the handshake, if it did.
func alertOf(err error) (means string, denies, told bool) {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return "", false, false
	}
	text := remote.Err.Error()
	for _, alert := range alerts {
		if strings.Contains(text, alert.text) {
			return alert.means, alert.denies, true
		}
	}
	return "TLS failed: " + strings.TrimPrefix(text, "tls: "), false, true
}

// denies tells whether the server does not let the client's certificate in, or asks for one.
func denies(err error) bool {
	_, denied, _ := alertOf(err)
	return denied
}

// whyEnded says what ended a connection. shaking: or its dial, which speaks TLS.
func whyEnded(err error, shaking bool) string {
	if means, _, told := alertOf(err); told {
		return means
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var header tls.RecordHeaderError
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &host):
		return "its certificate is not believed: " + strings.TrimPrefix(err.Error(), "x509: ")
	case shaking && errors.As(err, &header):
		return "it does not speak TLS"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if shaking {
			return "the server closed the connection in the TLS handshake; does it speak TLS?"
		}
		return "the server closed the connection"
	case shaking && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return "the server closed the connection in the TLS handshake; does it speak TLS?"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		if shaking {
			return "it timed out; does it speak TLS?"
		}
		return "timed out"
	}
	return err.Error()
}
