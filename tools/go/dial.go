package nowcalls

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"
)

// dialed is a connection that is ready for use: conn speaks TLS over raw, or is raw.
type dialed struct {
	conn, raw net.Conn
}

// dialFailure is why there is none. denied: the server does not let the client's certificate in.
type dialFailure struct {
	why    string
	denied bool
}

// dial connects, and shakes hands if TLS is wanted. Each address of the name has its share of what
// is left of the time, so one that drops packets does not eat that of the next.
func dial(
	ctx context.Context, to address, timeout time.Duration, t *tlsFiles,
) (dialed, *dialFailure) {
	var settings *tls.Config
	if t != nil {
		var err error
		if settings, err = t.config(to.host); err != nil {
			return dialed{}, &dialFailure{why: err.Error()}
		}
	}
	found, failure := lookUp(ctx, to.host, timeout)
	if failure != nil {
		return dialed{}, failure
	}
	failure = &dialFailure{why: "no address"}
	end := time.Now().Add(timeout)
	for i, ip := range found {
		share := time.Until(end) / time.Duration(len(found)-i)
		where := netip.AddrPortFrom(ip, uint16(to.port))
		var got dialed
		if got, failure = dialOne(ctx, where, share, settings); failure == nil {
			return got, nil
		}
	}
	return dialed{}, failure
}

func lookUp(ctx context.Context, host string, timeout time.Duration) ([]netip.Addr, *dialFailure) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err == nil {
		return found, nil
	}
	var failed *net.DNSError
	if ctx.Err() != nil || errors.As(err, &failed) && failed.IsTimeout {
		return nil, &dialFailure{why: "its name was not found in time"}
	}
	if failed != nil {
		return nil, &dialFailure{why: failed.Err}
	}
	return nil, &dialFailure{why: err.Error()}
}

func dialOne(
	ctx context.Context, where netip.AddrPort, share time.Duration, settings *tls.Config,
) (dialed, *dialFailure) {
	ctx, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", where.String())
	if err != nil {
		return dialed{}, &dialFailure{why: whyEnded(err, false)}
	}
	if settings == nil {
		return dialed{raw, raw}, nil
	}
	conn := tls.Client(raw, settings)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return dialed{}, &dialFailure{whyEnded(err, true), denies(err)}
	}
	return dialed{conn, raw}, nil
}
