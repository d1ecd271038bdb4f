// Command bench measures calls of a client: an acquire and its release, one at a time and many at
// once.
//
//	tools/dev run
//	go run ./bench -seconds 5
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"nowcalls"
)

var (
	server    = flag.String("server", "127.0.0.1:18730", "address of nowcalls-server")
	namespace = flag.String("namespace", "shop", "namespace of the rule")
	flow      = flag.Int64("flow", 1001, "flowId of the rule; its level must be above -at-once")
	atOnce    = flag.Int("at-once", 64, "calls at once in the second part")
	seconds   = flag.Float64("seconds", 5, "time of each part")
)

func main() {
	flag.Parse()
	client, err := nowcalls.New(nowcalls.Config{
		Address: *server, Namespace: *namespace, Fallback: nowcalls.FallbackFail})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, workers := range []int{1, *atOnce} {
		calls, took := measure(client, workers)
		fmt.Printf("%d at once: %.0f a second\n", workers, float64(calls)/took.Seconds())
	}
}

func measure(client *nowcalls.Client, workers int) (calls int64, took time.Duration) {
	begin := time.Now()
	end := begin.Add(time.Duration(*seconds * float64(time.Second)))
	var running sync.WaitGroup
	for i := 0; i < workers; i++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for time.Now().Before(end) {
				permit, err := client.Acquire(context.Background(), nowcalls.ID(*flow))
				if err != nil {
					log.Fatal(err)
				}
				if _, err := permit.Release(context.Background()); err != nil {
					log.Fatal(err)
				}
				atomic.AddInt64(&calls, 1)
			}
		}()
	}
	running.Wait()
	return calls, time.Since(begin)
}
